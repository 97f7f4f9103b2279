// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What forms whose ranks decode before they add ask of the other policies.

#pragma once

#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/quantize/detail/code_words.hpp>

namespace tersum::inline v0::detail {

//! @brief True, or a sentence of the compiler that says which policy does not fit.
template <chunker Chunker, rotator Rotator, coder Coder>
[[nodiscard]] constexpr bool suits_own_scales() noexcept
{
  static_assert(!adding_coder<Coder>,
                "tersum: summed_codes are added as they are, in steps that the ranks agree on: use "
                "in_wire or shard, or scaled_codes");
  using levels = typename Coder::quantizer_type;
  static_assert(!selecting_chunker<Chunker> || has_several_bits<Chunker>(),
                "tersum: codes with scales of their own take fixed_chunks or allocated_chunks");
  static_assert(conversion<levels> || (levels::bits >= 1 && levels::bits <= 16),
                "tersum: a code has 1 to 16 bits");
  if constexpr (has_magnitudes<levels>) {
    static_assert(
      levels::bits <= 8 && levels::magnitudes == 1 << (levels::bits - 1),
      "tersum: a code has 1 to 8 bits, one of them for the sign: magnitudes is 2^(bits - 1)");
  }
  if constexpr (block_quantizer<levels>) {
    static_assert(levels::block == 16 || levels::block == 32 || levels::block == 64 ||
                    levels::block == 128,
                  "tersum: a block with numbers of its own has 16, 32, 64 or 128 coordinates");
    static_assert(levels::block_bits == 8 || levels::block_bits == 16 || levels::block_bits == 32,
                  "tersum: the numbers of a block have 8, 16 or 32 bits");
  }
  static_assert(has_widths_of<Chunker, levels>(),
                "tersum: codes with scales of their own and allocated_chunks need a quantizer with "
                "with_bits: lloyd_max");
  static_assert(
    !has_several_bits<Chunker>() || has_distortion<levels>,
    "tersum: allocated_chunks weigh widths by the error of each: the quantizer needs distortion()");
  static_assert(Chunker::chunk_size >= 256,
                "tersum: codes with scales of their own need chunks of at least 256");
  static_assert(!codebook<levels> || Rotator::rotation_size == Chunker::chunk_size ||
                  !has_packed_rotation<Rotator, Chunker::chunk_size>,
                "tersum: a codebook with scales of its own takes whole chunks rotated: use "
                "partial_hadamard of the chunk size");
  static_assert(codebook<levels> || Rotator::rotation_size == 1,
                "tersum: blocks with scales of their own, and casts, stay where they are: use "
                "no_rotation");
  static_assert(
    scale_words<levels>(Chunker::chunk_size) % 4 == 0,
    "tersum: block scales lie in whole 16 bytes: a chunk needs 16 blocks or a multiple");
  return true;
}

}  // namespace tersum::inline v0::detail
