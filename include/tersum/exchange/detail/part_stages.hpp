// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is done to a chunk in hand under forms with parts, once for rows of vectors and for lanes of threads: `part_in_rows`
//! and `chunk_in_lanes`.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/part_items.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Adds up what all ranks sent of an owned chunk, and what the owner kept of it.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void add_ranks(Chunk const& chunk, typename Chunk::values& v)
{
  chunk.begin_with_kept(v);
  for (std::uint32_t rank = 0; rank < chunk.map.world; ++rank) {
    chunk.add(chunk.sent_by(rank), 1.0f, v);
  }
}

//! @brief Decodes what all ranks sent of a chunk of this rank's shard, adds it up, and writes the mean to the shard. Sets the flag of the
//! exchange if one of them is not finite.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void add_chunk_of_shard(Chunk const& chunk)
{
  auto const& args  = chunk.args;
  float const share = Chunk::math::divide(1.0f, static_cast<float>(args.world));
  typename Chunk::values v{};
  bool finite = true;
  for (std::uint32_t rank = 0; rank < chunk.map.world; ++rank) {
    std::uint32_t const* const part = chunk.sent_by(rank);
    chunk.add(part, share, v);
    if (chunk.travels()) { finite = finite && is_finite(chunk.scale_in(part)); }
  }
  chunk.give_to_shard(finite, v);
}

//! @brief Decodes a chunk of the mean to the gradient: what its owner has encoded, or what all ranks have, in their order.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void decode_chunk(Chunk& chunk)
{
  using math                      = typename Chunk::math;
  auto const& args                = chunk.args;
  std::uint32_t const copies      = copies_of_mean(args);
  std::uint32_t const* const part = chunk.part_of(args.parts.gathered, chunk.place.part);
  float scale                     = 0.0f;
  if (chunk.travels()) {
    scale = chunk.scale_in(part);
    for (std::uint32_t rank = 1; rank < copies; ++rank) {
      scale = math::add(scale, chunk.scale_in(chunk.part_of(args.parts.gathered, rank)));
    }
  }
  // If the budget pays for nothing, no norm has travelled.
  if (chunk.stays() && has_agreed(args)) {
    scale = scale_of_unsent<math>(chunk.memory(), args, chunk.number());
  }
  typename Chunk::values v{};
  float const share = share_of_copy<math>(args);
  chunk.add(part, share, v);
  for (std::uint32_t rank = 1; rank < copies; ++rank) {
    chunk.add(chunk.part_of(args.parts.gathered, rank), share, v);
  }
  chunk.give(scale, v);
}

}  // namespace tersum::inline v0::detail
