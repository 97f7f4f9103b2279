// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Neighbouring values between memory and the registers of one thread.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief `Size` neighbours to the registers of one thread, as floats, 16 bytes at a time.
//!
//! Threads may call it alone. A warp reads or writes all bytes of its sectors, but not in one access, so that they must
//! stay in the cache between two; chunks of a warp are better off with `load_chunk`. On sm_90 a float takes a quarter of an
//! instruction, a value of 16 bits one and an eighth.
//!
//! @par Example
//! @snippet examples/kernels/cast_to_nvfp4.hpp load
//! @tparam Size  A multiple of 8.
//! @param from   Floats, halves or bfloat16, aligned to 16 bytes.
template <block_context Context, gradient_element Element, std::size_t Size>
TERSUM_BODY void load_values(Context const& ctx, Element const* from, float (&v)[Size])
{
  static_assert(Size % 8 == 0, "tersum: load_values takes a multiple of 8");
  TERSUM_UNROLL
  for (std::size_t i = 0; i < Size; i += 8) { detail::load_eight(ctx, from + i, v + i); }
}

//! @brief The same to memory, rounded to the nearest element that is finite; NaN stays NaN.
template <block_context Context, gradient_element Element, std::size_t Size>
TERSUM_BODY void store_values(Context const& ctx, float const (&v)[Size], Element* to)
{
  static_assert(Size % 8 == 0, "tersum: store_values takes a multiple of 8");
  TERSUM_UNROLL
  for (std::size_t i = 0; i < Size; i += 8) { detail::store_eight<true>(ctx, to + i, v + i); }
}

}  // namespace tersum::inline v0
