// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An all-reduce of one's own for packed codes of 4 bits that all ranks can address: each rank adds a share of the words, and writes
//! the sums to all.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/reduce/saturating_sum.hpp>

namespace sum_over_peers {

//! Payloads of all ranks, in this rank's address space.
struct peers {
  tersum::word4* payload[8];
  int count;  //!< Ranks, up to 8.
  int rank;   //!< This one.
};

//! Any number of blocks and threads. All ranks' payloads must be complete before one of them starts, and all must have ended before a
//! sum is read: put a barrier of the ranks before and after the launch.
//! @param size  Of a payload, in units of 16 bytes.
template <tersum::block_context Context>
TERSUM_BODY void all_reduce(Context const& ctx, peers const& all, std::uint64_t size)
{
  constexpr tersum::saturating_add<4> add{};
  std::uint64_t const share =
    (size + static_cast<unsigned>(all.count) - 1) / static_cast<unsigned>(all.count);
  std::uint64_t const begin = share * static_cast<unsigned>(all.rank);
  std::uint64_t const end   = begin + share < size ? begin + share : size;
  std::uint64_t const step  = std::uint64_t{ctx.grid_blocks()} * ctx.block_threads();
  for (std::uint64_t i =
         begin + std::uint64_t{ctx.block_rank()} * ctx.block_threads() + ctx.thread_rank();
       i < end;
       i += step) {
    // All eight are named, as pointers that are found by an index go to local memory.
    tersum::word4 sum = ctx.load(all.payload[0] + i);
    TERSUM_UNROLL
    for (int rank = 1; rank < 8; ++rank) {
      if (rank >= all.count) { break; }
      tersum::word4 const more = ctx.load(all.payload[rank] + i);
      //! [add]
      sum = {add(sum.x, more.x), add(sum.y, more.y), add(sum.z, more.z), add(sum.w, more.w)};
      //! [add]
    }
    TERSUM_UNROLL
    for (int rank = 0; rank < 8; ++rank) {
      if (rank >= all.count) { break; }
      ctx.store(all.payload[rank] + i, sum);
    }
  }
}

}  // namespace sum_over_peers
