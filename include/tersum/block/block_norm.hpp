// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm and the largest magnitude of a chunk in registers.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/block/thread_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

namespace tersum::inline v0 {

//! @brief The norms of a chunk, on all its threads.
//!
//! All threads of the warp (above 1024 coordinates, of the block) must call. Chunks of more than 1024 coordinates need `storage_floats` of
//! shared memory, aligned to 16 bytes, that nobody uses before, and which are in use until the next barrier; others none, and take a null
//! pointer. On sm_90 a value takes 2.2 instructions for the squared norm, 4.1 of 8192 coordinates, and 1.6 for the largest magnitude.
//!
//! @par Example
//! @snippet examples/kernels/bias_in_4_bits.hpp norm
//! @tparam Size     Coordinates in a chunk.
//! @tparam Striped  Whether they lie as `block_values<Size, true>` leaves them, and not in the loaded arrangement.
template <int Size, bool Striped = false>
struct block_norm {
  using chunk = block_chunk<Size>;

  static constexpr int storage_floats = chunk::in_warp ? 0 : Size;  //!< Shared memory of a chunk.

  //! @brief The sum of the squares, with the bits that `chunk_norms` and exchanges have.
  //!
  //! The sum over the ranks of what this returns is what the root mean square of a step is made of: see docs/kernels.md. It is not finite
  //! if a coordinate is not, or if the sum exceeds the range of float; 0 for a chunk that does not exist.
  //! @param ctx      The machine.
  //! @param mine     This thread's chunk.
  //! @param storage  Shared memory.
  //! @param v        32 coordinates.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static float squared(Context const& ctx,
                                                 chunk const& mine,
                                                 float* storage,
                                                 float const (&v)[32])
  {
    // Coordinate i is added to the accumulator number i modulo 256, or i in shorter chunks; then neighbours are added.
    float sums[detail::extent(sets)][detail::extent(row)] = {};
    if constexpr (chunk::in_warp) {
      TERSUM_UNROLL
      for (int i = 0; i < 32; ++i) {
        float& sum = sums[i / row % sets][i % row];
        sum        = Context::fma(v[i], v[i], sum);
      }
    } else {
      TERSUM_UNROLL
      for (int i = 0; i < 32; i += 4) {
        int const striped = i * (Size / 32) + static_cast<int>(mine.thread) * 4;
        thread_values<4>::store(ctx, v + i, storage + (Striped ? striped : mine.coordinate(i)));
      }
      ctx.sync_block();
      // Chunks of 16384 and 32768 coordinates have more threads than accumulators.
      if (float const* const own = storage + mine.thread * row; mine.thread < 256 / row) {
        TERSUM_UNROLL
        for (int i = 0; i < Size; i += 256) {
          float x[4];
          if (row == 4) {
            thread_values<4>::load(ctx, own + i, x);
          } else {
            TERSUM_UNROLL
            for (int j = 0; j < row; ++j) { x[j] = own[i + j]; }
          }
          TERSUM_UNROLL
          for (int j = 0; j < row; ++j) { sums[0][j] = Context::fma(x[j], x[j], sums[0][j]); }
        }
      }
    }
    float parts[detail::extent(sets)];
    TERSUM_UNROLL
    for (int r = 0; r < sets; ++r) {
      parts[r] = detail::chunk_total(ctx, detail::sum_neighbours<row>(ctx, sums[r]), mine, storage);
    }
    return detail::sum_neighbours<sets>(ctx, parts);
  }

  //! @brief The largest magnitude of coordinates in any arrangement; NaN if one is. It needs the first `Size / 1024` floats of `storage` only,
  //! and leaves them free.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static float largest(Context const& ctx,
                                                 chunk const& mine,
                                                 float* storage,
                                                 float const (&v)[32])
  {
    std::uint32_t const most = Context::bits(thread_norm<32>::largest(ctx, v));
    return Context::from_bits(detail::chunk_maximum(ctx, most, mine, storage));
  }

 private:
  //! Accumulators that lie side by side in a thread, and how many such rows it has.
  static constexpr int row  = !chunk::in_warp ? detail::maximum(256 / chunk::threads, 1)
                              : Striped       ? 4
                                              : 8;
  static constexpr int sets = !chunk::in_warp ? 1 : 32 / row * 256 / detail::maximum(Size, 256);
};

}  // namespace tersum::inline v0
