// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk between global memory and registers.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! Whether a chunk is whole and can be moved sixteen bytes at a time: the same for all of its threads.
template <int Size, class Element>
[[nodiscard]] TERSUM_BODY bool moves_in_eights(Element const* first, int length)
{
  return length == Size && reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
}

}  // namespace detail

//! @brief This thread's 32 coordinates as floats, loaded arrangement; zeros where the chunk has none.
//! @param from  The whole array, of float, half or bfloat16: `mine.offset` says where the chunk is. Whole chunks that are
//!              aligned to 16 bytes are read 16 bytes at a time, others an element at a time.
template <block_context Context, int Size, gradient_element Element>
TERSUM_BODY void load_chunk(Context const& ctx,
                            block_chunk<Size> const& mine,
                            Element const* from,
                            float (&v)[32])
{
  from += mine.offset;
  if (detail::moves_in_eights<Size>(from, mine.length)) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; i += 8) { detail::load_eight(ctx, from + mine.coordinate(i), v + i); }
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      int const at = mine.coordinate(i);
      v[i]         = at < mine.length ? Context::value(ctx.load(from + at)) : 0.0f;
    }
  }
}

//! @brief Writes this thread's coordinates that exist, loaded arrangement, rounded to the nearest element that is finite:
//! beyond the largest half that is +-65504, as in the means that the library decodes. NaN stays NaN.
template <block_context Context, int Size, gradient_element Element>
TERSUM_BODY void store_chunk(Context const& ctx,
                             block_chunk<Size> const& mine,
                             float const (&v)[32],
                             Element* to)
{
  to += mine.offset;
  if (detail::moves_in_eights<Size>(to, mine.length)) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; i += 8) {
      detail::store_eight<true>(ctx, to + mine.coordinate(i), v + i);
    }
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      int const at = mine.coordinate(i);
      if (at < mine.length) { ctx.store(to + at, Context::template finite_element<Element>(v[i])); }
    }
  }
}

}  // namespace tersum::inline v0
