// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm and the largest magnitude of a chunk in registers.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

namespace tersum::inline v0 {

//! @brief The sum of a chunk's squares, with the bits that `chunk_norms` and exchanges have, on all threads of the chunk.
//!
//! All threads of the warp must call; it needs no shared memory. On sm_90 a value takes 2.4 instructions. The sum over the ranks of
//! what this returns is what the root mean square of a step is made of: see docs/kernels.md. It is not finite if a coordinate is not,
//! or if the sum exceeds the range of float; 0 for a chunk that does not exist.
//!
//! @par Example
//! @snippet examples/kernels/bias_in_4_bits.hpp norm
//! @tparam Size  Coordinates in a chunk, 128 to 1024: those whose threads share a warp.
//! @param ctx   The machine.
//! @param mine  This thread's chunk.
//! @param v     32 coordinates, in the loaded arrangement of `block_chunk`.
template <int Size, block_context Context>
[[nodiscard]] TERSUM_BODY float block_norm(Context const& ctx,
                                           [[maybe_unused]] block_chunk<Size> const& mine,
                                           float const (&v)[32])
{
  static_assert(
    block_chunk<Size>::in_warp,
    "tersum: block_norm takes chunks of up to 1024 coordinates, whose threads share a warp");
  // Coordinate i is added to the accumulator number i modulo 256, or i in shorter chunks; then neighbours are added. Register
  // 8 r + j of thread t holds coordinate r Size/4 + 8 t + j.
  constexpr int sets = Size == 1024 ? 1 : Size == 512 ? 2 : 4;  // of accumulators that a thread has
  float sums[detail::extent(sets)][8] = {};
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      float& sum = sums[r % sets][j];
      sum        = Context::fma(v[8 * r + j], v[8 * r + j], sum);
    }
  }
  float parts[detail::extent(sets)];
  TERSUM_UNROLL
  for (int r = 0; r < sets; ++r) {
    TERSUM_UNROLL
    for (int width = 1; width < 8; width *= 2) {
      TERSUM_UNROLL
      for (int j = 0; j < 8; j += 2 * width) {
        sums[r][j] = Context::add(sums[r][j], sums[r][j + width]);
      }
    }
    parts[r] = sums[r][0];
    TERSUM_UNROLL
    for (unsigned mask = 1; mask < block_chunk<Size>::threads; mask *= 2) {
      parts[r] = Context::add(parts[r], ctx.shuffle_xor(parts[r], mask));
    }
  }
  TERSUM_UNROLL
  for (int width = 1; width < sets; width *= 2) {
    TERSUM_UNROLL
    for (int r = 0; r < sets; r += 2 * width) {
      parts[r] = Context::add(parts[r], parts[r + width]);
    }
  }
  return parts[0];
}

//! @brief The largest magnitude of a chunk's coordinates, in any arrangement, on all threads of the chunk; NaN if one is.
//!
//! All threads of the warp (above 1024 coordinates, of the block) must call. On sm_90 a value takes two instructions, and a thread twelve.
//!
//! @par Example
//! @snippet bench/plain_kernels.cuh largest
//! @param storage  Above 1024 coordinates `Size / 1024` floats that nobody uses before; free afterwards. Otherwise it is not used.
template <int Size, block_context Context>
[[nodiscard]] TERSUM_BODY float block_largest(Context const& ctx,
                                              block_chunk<Size> const& mine,
                                              float const (&v)[32],
                                              float* storage = nullptr)
{
  std::uint32_t most = 0;
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { most = detail::maximum(most, Context::bits(v[k]) & 0x7fffffffu); }
  return Context::from_bits(detail::chunk_maximum(ctx, most, mine, storage));
}

}  // namespace tersum::inline v0
