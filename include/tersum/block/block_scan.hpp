// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of integers over the threads of a block.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief The sums of integers that the threads of a block hold, one each, up to each thread.
//!
//! All `Threads` threads of the block call it together: whole warps, up to 1024 threads. A scan of 32 is one warp's, of any block: it needs
//! no memory and no barrier. On sm_90 it takes 44 instructions a thread, of a warp 12.
//!
//! @par Example
//! @snippet bench/plain_kernels.cuh scan
template <unsigned Threads>
struct block_scan {
  static_assert(Threads % 32 == 0 && Threads <= 1024, "tersum: a scan is of whole warps, up to 32");

  static constexpr int storage_words = Threads > 32 ? 32 : 0;  //!< Shared memory of the block.

  //! @brief The sum of the values of the threads below this one. Synchronizes the block: the memory is free again on return.
  //! @param total    Receives the sum of all values.
  //! @param storage  `storage_words`, aligned to 4 bytes.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t exclusive_sum(Context const& ctx,
                                                               std::uint32_t value,
                                                               std::uint32_t& total,
                                                               std::uint32_t* storage)
  {
    unsigned const lane      = ctx.lane();
    std::uint32_t const upto = ctx.warp_scan(value);
    if constexpr (Threads == 32) {
      total = ctx.shuffle(upto, 31);
      return upto - value;
    }
    if (lane == 31) { storage[ctx.thread_rank() / 32] = upto; }
    ctx.sync_block();
    std::uint32_t const of_warp   = lane < Threads / 32 ? storage[lane] : 0u;
    std::uint32_t const upto_warp = ctx.warp_scan(of_warp);
    total                         = ctx.shuffle(upto_warp, 31);
    std::uint32_t const below     = ctx.shuffle(upto_warp - of_warp, ctx.thread_rank() / 32);
    ctx.sync_block();
    return below + (upto - value);
  }
};

}  // namespace tersum::inline v0
