// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What forms whose ranks decode before they add ask of the other policies.

#pragma once

#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/needs.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <string_view>

namespace tersum::inline v0::detail {

//! @brief Empty, or a sentence that says which policy does not fit.
template <bool Ask, chunker Chunker, rotator Rotator, coder Coder>
[[nodiscard]] constexpr std::string_view suits_own_scales() noexcept
{
  if constexpr (adding_coder<Coder>) {
    TERSUM_NEEDS(
      "tersum: summed_codes are added as they are, in steps that the ranks agree on: use in_wire or shard, or scaled_codes",
      !adding_coder<Coder>);
  } else {
    using levels = typename Coder::quantizer_type;
    TERSUM_NEEDS("tersum: codes with scales of their own take fixed_chunks or allocated_chunks",
                 !selecting_chunker<Chunker> || has_several_bits<Chunker>());
    TERSUM_NEEDS("tersum: a code has 1 to 16 bits",
                 conversion<levels> || (levels::bits >= 1 && levels::bits <= 16));
    if constexpr (has_magnitudes<levels>) {
      TERSUM_NEEDS(
        "tersum: a code has 1 to 8 bits, one of them for the sign: magnitudes is 2^(bits - 1)",
        levels::bits <= 8 && levels::magnitudes == 1 << (levels::bits - 1));
    }
    if constexpr (block_quantizer<levels>) {
      TERSUM_NEEDS("tersum: a block with numbers of its own has 16, 32, 64 or 128 coordinates",
                   levels::block == 16 || levels::block == 32 || levels::block == 64 ||
                     levels::block == 128);
      TERSUM_NEEDS("tersum: the numbers of a block have 8, 16 or 32 bits",
                   levels::block_bits == 8 || levels::block_bits == 16 || levels::block_bits == 32);
    }
    TERSUM_NEEDS(
      "tersum: codes with scales of their own and allocated_chunks need a quantizer with with_bits: lloyd_max",
      has_widths_of<Chunker, levels>());
    TERSUM_NEEDS(
      "tersum: allocated_chunks weigh widths by the error of each: the quantizer needs distortion()",
      !has_several_bits<Chunker>() || has_distortion<levels>);
    TERSUM_NEEDS("tersum: codes with scales of their own need chunks of at least 256",
                 Chunker::chunk_size >= 256);
    TERSUM_NEEDS(
      "tersum: a codebook with scales of its own takes whole chunks rotated: use partial_hadamard of the chunk size",
      !codebook<levels> || Rotator::rotation_size == Chunker::chunk_size ||
        !has_packed_rotation<Rotator, Chunker::chunk_size>);
    TERSUM_NEEDS(
      "tersum: blocks with scales of their own, and casts, stay where they are: use no_rotation",
      codebook<levels> || Rotator::rotation_size == 1);
    TERSUM_NEEDS(
      "tersum: block scales lie in whole 16 bytes: a chunk needs 16 blocks or a multiple",
      scale_words<levels>(Chunker::chunk_size) % 4 == 0);
  }
  return {};
}

}  // namespace tersum::inline v0::detail
