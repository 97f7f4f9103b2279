// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What forms ask of the other policies: where codes are added, and where they have scales of their own.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/reduce/saturating_sum.hpp>

#include <string_view>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Empty, or a sentence that says which policy does not fit.
template <bool Ask,
          chunker Chunker,
          rotator Rotator,
          adding_coder Coder,
          feedback Feedback,
          metric Metric>
[[nodiscard]] constexpr std::string_view suits_summed_codes() noexcept
{
  constexpr int chunk_size = Chunker::chunk_size;
  constexpr bool of_wholes = Rotator::rotation_size == 0;
  using range              = typename Coder::range_type;
  using reducer            = typename Coder::reducer_type;
  TERSUM_NEEDS("tersum: partial_hadamard<N> rotates whole chunks: make N equal to the chunk size",
               Rotator::rotation_size <= 1 || Rotator::rotation_size == chunk_size);
  TERSUM_NEEDS(
    "tersum: allocated_chunks needs a quantizer and a reducer with with_bits: stochastic_quantizer, saturating_sum",
    has_widths_of<Chunker, typename Coder::quantizer_type>() && has_widths_of<Chunker, reducer>());
  TERSUM_NEEDS(
    "tersum: codes of allocated_chunks are added in saturating lanes: use saturating_sum",
    !has_several_bits<Chunker>() ||
      std::is_same_v<typename reducer::op, saturating_add<reducer::lane_bits>>);
  TERSUM_NEEDS(
    "tersum: lanes of several widths have 2, 4 or 8 bits",
    !has_several_bits<Chunker>() ||
      requires { requires Chunker::widths[Chunker::level_count - 1] <= 8; });
  TERSUM_NEEDS("tersum: a rotator of whole tensors has no feedback: use partial_hadamard",
               !of_wholes || !Feedback::enabled);
  TERSUM_NEEDS(
    "tersum: chunk_size must be a power of two from 128 to 32768; a cast takes smaller ones",
    chunk_size >= 128 && chunk_size <= 32768 && (chunk_size & (chunk_size - 1)) == 0);
  TERSUM_NEEDS(
    "tersum: a rotator of whole tensors rotates all chunks, and none is chosen: use partial_hadamard",
    !selecting_chunker<Chunker> || !of_wholes);
  TERSUM_NEEDS("tersum: a rotator of whole tensors takes ranges of the library",
               !of_wholes || has_measurement<range>);
  TERSUM_NEEDS("tersum: a rotator of whole tensors takes plain_metric: use partial_hadamard",
               !of_wholes || !Metric::scaled);
  if constexpr (selecting_chunker<Chunker> && !measures<range, statistic::chunk_square_norm>) {
    TERSUM_NEEDS(
      "tersum: chunks are chosen by their norms: use rms_range, or give your range energy(agreed, coordinates)",
      !Chunker::by_norm || has_energy<range>);
    TERSUM_NEEDS(
      "tersum: chunks of several widths take rms_range, whose clip follows the width; other ranges take chunks of one width",
      !has_several_bits<Chunker>() && !has_measurement<range>);
    TERSUM_NEEDS(
      "tersum: where chunks are chosen, tracked_correlation compares their sums with their norms: use rms_range",
      !range::headroom_type::tracked);
  }
  return {};
}

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
    TERSUM_NEEDS(
      "tersum: a code has 1 to 8 bits, one of them for the sign: magnitudes is 2^(bits - 1)",
      !has_magnitudes<levels> ||
        requires { requires levels::bits <= 8 && levels::magnitudes == 1 << (levels::bits - 1); });
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
