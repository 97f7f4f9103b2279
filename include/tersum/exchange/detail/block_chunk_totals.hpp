// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums and maxima over the threads of a chunk, of one value for each thread; all of them get the result. Kernel body
//! parts. `storage` is the shared memory of the chunk's tile.

#pragma once

#include <tersum/exchange/detail/block_values.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief How many threads of a chunk lie in one warp.
template <class Codec>
inline constexpr unsigned lanes_of_chunk =
  chunk_share<Codec>::hadamard::threads < 32 ? chunk_share<Codec>::hadamard::threads : 32;

//! @brief The sum of one float of each thread, neighbours first. `storage` may be in use before the call, and is in use
//! until the next barrier.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY float chunk_total(Context const& ctx,
                                            float value,
                                            chunk_share<Codec> const& mine,
                                            float* storage)
{
  using hadamard = typename chunk_share<Codec>::hadamard;
  TERSUM_UNROLL
  for (unsigned mask = 1; mask < lanes_of_chunk<Codec>; mask *= 2) {
    value = Context::add(value, ctx.shuffle_xor(value, mask));
  }
  if constexpr (!hadamard::in_warp) {
    constexpr int warps = hadamard::threads / 32;
    ctx.sync_block();
    if (mine.thread % 32 == 0) { storage[mine.thread / 32] = value; }
    ctx.sync_block();
    float sums[warps];
    TERSUM_UNROLL
    for (int i = 0; i < warps; ++i) { sums[i] = storage[i]; }
    TERSUM_UNROLL
    for (int stride = 1; stride < warps; stride *= 2) {
      TERSUM_UNROLL
      for (int i = 0; i + stride < warps; i += 2 * stride) {
        sums[i] = Context::add(sums[i], sums[i + stride]);
      }
    }
    value = sums[0];
  }
  return value;
}

//! @brief The largest of one integer of each thread. `storage` must not be in use before, and is free afterwards.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t chunk_maximum(Context const& ctx,
                                                      std::uint32_t value,
                                                      chunk_share<Codec> const& mine,
                                                      float* storage)
{
  using hadamard = typename chunk_share<Codec>::hadamard;
  TERSUM_UNROLL
  for (unsigned mask = 1; mask < lanes_of_chunk<Codec>; mask *= 2) {
    value = maximum(value, ctx.shuffle_xor(value, mask));
  }
  if constexpr (!hadamard::in_warp) {
    auto* const words = reinterpret_cast<std::uint32_t*>(storage);
    if (mine.thread % 32 == 0) { words[mine.thread / 32] = value; }
    ctx.sync_block();
    for (int warp = 0; warp < hadamard::threads / 32; ++warp) {
      value = maximum(value, words[warp]);
    }
    ctx.sync_block();
  }
  return value;
}

}  // namespace tersum::inline v0::detail
