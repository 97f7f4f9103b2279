// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Columns of a chunk in shared memory, from and to registers: kernel body parts.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/block/chunk_order.hpp>
#include <tersum/config.hpp>

namespace tersum::inline v0::detail {

//! @brief A thread's 32 coordinates of a tile in the wire arrangement, of which four neighbouring threads have neighbours: matrices move
//! them four at a time. Where a block shares a chunk kernels would take many more registers.
//!
//! Functions take a thread's place t in its chunk, and the `first` coordinate of that in the tile.
template <class Tile, int Size>
struct tile_columns {
  using order                       = chunk_order<Size>;
  static constexpr bool in_matrices = Size >= 256 && Size <= 1024;

  template <class Context>
  TERSUM_BODY static void load([[maybe_unused]] Context const& ctx,
                               float const* storage,
                               unsigned t,
                               unsigned first,
                               float (&v)[32])
  {
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) {
      if constexpr (in_matrices && has_matrices<Context>) {
        if (k % 4 == 0) { ctx.load_matrix(storage + base_of_row(t, first) + stride(k), v + k); }
      } else {
        v[k] = storage[base(t, first) + stride(k)];
      }
    }
  }

  template <class Context>
  TERSUM_BODY static void store([[maybe_unused]] Context const& ctx,
                                float* storage,
                                unsigned t,
                                unsigned first,
                                float const (&v)[32])
  {
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) {
      if constexpr (in_matrices && has_matrices<Context>) {
        if (k % 4 == 0) { ctx.store_matrix(storage + base_of_row(t, first) + stride(k), v + k); }
      } else {
        storage[base(t, first) + stride(k)] = v[k];
      }
    }
  }

 private:
  //! The distance in storage from register 0 to register k, the same for every thread.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned stride(unsigned k) noexcept
  {
    return Tile::slot(order::coordinate(k));
  }
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned base(unsigned t, unsigned first) noexcept
  {
    return Tile::slot(first + order::coordinate(32 * t));
  }

  //! The four neighbours that this lane points to: register lane / 8 of the four lanes from 4 (lane % 8) on.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned base_of_row(unsigned t,
                                                                    unsigned first) noexcept
  {
    constexpr unsigned threads = Size / 32;
    unsigned const lane        = first / 32 + t;
    unsigned const other       = lane % 8 * 4;
    return base(other % threads, other / threads * Size) + lane / 8 * stride(1);
  }
};

}  // namespace tersum::inline v0::detail
