// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What forms whose codes are added ask of the other policies.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/needs.hpp>
#include <tersum/detail/policy_kinds.hpp>
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
    "tersum: codes of allocated_chunks are added in saturating lanes: use saturating_sum",
    !has_several_bits<Chunker>() || !has_widths_of<Chunker, reducer>() ||
      std::is_same_v<typename reducer::op, saturating_add<reducer::lane_bits>>);
  if constexpr (has_several_bits<Chunker>()) {
    TERSUM_NEEDS("tersum: lanes of several widths have 2, 4 or 8 bits",
                 Chunker::widths[Chunker::level_count - 1] <= 8);
  }
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
  return suits_choice<Ask, Chunker, range>();
}

}  // namespace tersum::inline v0::detail
