// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm and the largest magnitude of values in the registers of one thread.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

namespace tersum::inline v0 {

namespace detail {

//! The sum of `Count` floats, a power of two, which it changes: neighbours are added first.
template <int Count, class Context>
[[nodiscard]] TERSUM_BODY float sum_neighbours(Context const&, float* x)
{
  TERSUM_UNROLL
  for (int width = 1; width < Count; width *= 2) {
    TERSUM_UNROLL
    for (int i = 0; i < Count; i += 2 * width) { x[i] = Context::add(x[i], x[i + width]); }
  }
  return x[0];
}

}  // namespace detail

//! @brief The norms of `Size` values, all of them in the registers of one thread.
//!
//! It needs no shared memory and no barrier, and threads may call it alone. Values of a chunk that several threads share take
//! `block_norm`, which is made of it. On sm_90 a value takes one instruction for its magnitude and two for its square.
//!
//! @par Example
//! @snippet bench/plain_kernels.cuh norm
//! @tparam Size  Values of a thread, a power of two.
template <int Size>
struct thread_norm {
  static_assert(Size > 0 && (Size & (Size - 1)) == 0,
                "tersum: thread_norm<Size> needs a power of two");

  //! @brief The sum of the squares, neighbours first: up to 64 values have the bits that `chunk_norms` gives for chunks of this size.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static float squared(Context const& ctx, float const* v)
  {
    float squares[detail::extent(Size)];
    TERSUM_UNROLL
    for (int i = 0; i < Size; ++i) { squares[i] = Context::multiply(v[i], v[i]); }
    return detail::sum_neighbours<Size>(ctx, squares);
  }

  //! The largest magnitude; NaN if a value is.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static float largest(Context const&, float const* v)
  {
    float most = 0.0f;
    TERSUM_UNROLL
    for (int i = 0; i < Size; ++i) { most = Context::max_magnitude(most, v[i]); }
    return most;
  }
};

}  // namespace tersum::inline v0
