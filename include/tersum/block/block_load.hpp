// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk between global memory and registers.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

namespace detail {

//! Whether a chunk is whole and can be moved sixteen bytes at a time. All of its threads get the same answer.
template <int Size, class Element>
[[nodiscard]] TERSUM_BODY bool moves_in_eights(Element const* first, int length)
{
  return length == Size && reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
}

//! @brief Eight neighbours of a thread's coordinates, those of quarter r, to v[0..7]; zeros where there are none.
//! @tparam Edge   Whether coordinates may be missing, or the chunk not aligned to 16 bytes.
//! @param exists  Whether the chunk has any.
//! @param chunk   Its first coordinate.
//! @param second  That of another array of floats, or nullptr: join(value, other) takes the place of each value.
template <bool Edge,
          class Context,
          int Size,
          class Element,
          class Second = std::nullptr_t,
          class Join   = std::nullptr_t>
TERSUM_BODY void load_quarter(Context const& ctx,
                              block_chunk<Size> const& mine,
                              bool exists,
                              Element const* chunk,
                              int r,
                              float* v,
                              [[maybe_unused]] Second second    = nullptr,
                              [[maybe_unused]] Join const& join = nullptr)
{
  constexpr bool joins       = !std::is_null_pointer_v<Second>;
  unsigned const begin       = mine.thread * 8 + static_cast<unsigned>(r * (Size / 4));
  Element const* const first = chunk + begin;
  if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      v[j] = 0.0f;
      if (exists && mine.coordinate(8 * r + j) < mine.length) {
        v[j] = Context::value(ctx.load(first + j));
        if constexpr (joins) { v[j] = join(v[j], Context::value(ctx.load(second + begin + j))); }
      }
    }
  } else if (exists) {
    load_eight(ctx, first, v);
    if constexpr (joins) {
      float others[8];
      load_eight(ctx, second + begin, others);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) { v[j] = join(v[j], others[j]); }
    }
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = 0.0f; }
  }
}

//! @brief Writes eight neighbours, those that exist, rounded to the nearest element that is finite.
template <bool Edge, class Context, int Size, class Element>
TERSUM_BODY void store_quarter(Context const& ctx,
                               block_chunk<Size> const& mine,
                               bool exists,
                               float const* v,
                               Element* chunk,
                               int r)
{
  Element* const first = chunk + mine.thread * 8 + r * (Size / 4);
  if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      int const at = mine.coordinate(8 * r + j);
      if (exists && at < mine.length) {
        ctx.store(first + j, Context::template finite_element<Element>(v[j]));
      }
    }
  } else if (exists) {
    store_eight<true>(ctx, first, v);
  }
}

}  // namespace detail

//! @brief This thread's 32 coordinates as floats, loaded arrangement; zeros where the chunk has none.
//! @param ctx   The machine.
//! @param mine  This thread's chunk.
//! @param from  The whole array, of float, half or bfloat16: `mine.offset` says where the chunk is. Whole chunks that are
//!              aligned to 16 bytes are read 16 bytes at a time, others an element at a time.
//! @param v     Receives the coordinates.
//!
//! @par Example
//! @snippet examples/kernels/inside_your_kernel.hpp load
template <block_context Context, int Size, gradient_element Element>
TERSUM_BODY void load_chunk(Context const& ctx,
                            block_chunk<Size> const& mine,
                            Element const* from,
                            float (&v)[32])
{
  from += mine.offset;
  if (detail::moves_in_eights<Size>(from, mine.length)) {
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      detail::load_quarter<false>(ctx, mine, true, from, r, v + 8 * r);
    }
  } else {
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) { detail::load_quarter<true>(ctx, mine, true, from, r, v + 8 * r); }
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
    for (int r = 0; r < 4; ++r) { detail::store_quarter<false>(ctx, mine, true, v + 8 * r, to, r); }
  } else {
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) { detail::store_quarter<true>(ctx, mine, true, v + 8 * r, to, r); }
  }
}

}  // namespace tersum::inline v0
