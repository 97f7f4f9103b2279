// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk between global memory and registers.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/thread_values.hpp>
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

//! Where an array goes on, if there is one.
template <class Element>
[[nodiscard]] TERSUM_BODY Element const* behind(Element const* array, unsigned begin)
{
  return array + begin;
}
[[nodiscard]] TERSUM_BODY std::nullptr_t behind(std::nullptr_t, unsigned) { return nullptr; }

//! @brief A value of an array; where another one is given join(value, other) with its value at the same place.
template <class Context, class Element, class At, class Second, class Join>
[[nodiscard]] TERSUM_BODY float load_joined(Context const& ctx,
                                            Element const* first,
                                            At at,
                                            [[maybe_unused]] Second second,
                                            [[maybe_unused]] Join const& join)
{
  float const value = Context::value(ctx.load(first + at));
  if constexpr (std::is_null_pointer_v<Second>) {
    return value;
  } else {
    return join(value, Context::value(ctx.load(second + at)));
  }
}

//! @brief The same of eight neighbours, which lie at multiples of 16 bytes.
template <class Context, class Element, class Second, class Join>
TERSUM_BODY void load_eight_joined(Context const& ctx,
                                   Element const* first,
                                   float* v,
                                   [[maybe_unused]] Second second,
                                   [[maybe_unused]] Join const& join)
{
  thread_values<8>::load(ctx, first, v);
  if constexpr (!std::is_null_pointer_v<Second>) {
    float others[8];
    thread_values<8>::load(ctx, second, others);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = join(v[j], others[j]); }
  }
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
  unsigned const begin = mine.thread * 8 + static_cast<unsigned>(r * (Size / 4));
  if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      v[j] = 0.0f;
      if (exists && mine.coordinate(8 * r + j) < mine.length) {
        v[j] = load_joined(ctx, chunk + begin, j, behind(second, begin), join);
      }
    }
  } else if (exists) {
    Element const* const first = chunk + begin;
    load_eight_joined(ctx, first, v, behind(second, begin), join);
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
    thread_values<8>::store(ctx, v, first);
  }
}

//! @brief Calls piece(at, left, i) with each 16 bytes of a chunk that a thread moves: values i and following are those at `at`, of which
//! `left` exist. Those of all threads fill whole sectors of memory.
//! @tparam Pairs  Of floats: two neighbouring threads move the 16 of a quarter in turn, and `pair_fours` makes the loaded arrangement of
//!                them. Otherwise floats are in the order of the chunk, as `block_hadamard::put` has them; elements of 16 bits are in it.
template <bool Pairs, int Size, class Element, class Piece>
TERSUM_BODY void each_piece(block_chunk<Size> const& mine, Element* chunk, Piece const& piece)
{
  constexpr int count = 16 / static_cast<int>(sizeof(Element));
  constexpr int in_8  = 8 / count;
  constexpr int each  = Pairs ? 8 : count;
  constexpr int apart = Pairs ? 12 : Size / 8;
  int const thread    = static_cast<int>(mine.thread);
  int const odd       = Pairs ? thread % 2 : 0;
  int const first[2]  = {each * thread - odd * 4, each * thread + apart - odd * 12};
  int const left[2]   = {mine.length - first[0], mine.length - first[1]};
  // Not by first: nvcc would make each address of an edge anew.
  chunk += each * thread;
  Element* const even  = chunk + apart;
  Element* const at[2] = {odd == 0 ? chunk : chunk - 4, odd == 0 ? even : chunk};
  TERSUM_UNROLL
  for (int k = 0; k < 32 / count; ++k) {
    int const quarter = k / in_8 * (Size / 4);
    piece(at[k % in_8] + quarter, left[k % in_8] - quarter, k * count);
  }
}

//! @brief Fours of pairs to the loaded arrangement, or back.
template <bool Back, class Context>
TERSUM_BODY void pair_fours(Context const& ctx, bool odd, float const* from, float* to)
{
  TERSUM_UNROLL
  for (int i = 0; i < 32; i += i % 4 == 3 ? 5 : 1) {
    float const low = from[i], high = from[i + 4];
    float const other = ctx.shuffle_xor(Back || !odd ? high : low, 1);
    to[i]             = !odd ? low : Back ? other : high;
    to[i + 4]         = Back && odd ? low : other;
  }
}

}  // namespace detail

//! @brief A chunk between global memory and the registers of its threads, as floats in the *loaded* arrangement of `block_chunk`.
//!
//! All threads of the warp call both functions, which need no shared memory. Whole chunks that are aligned move 16 bytes at a time, edges
//! an element. On sm_90 a float takes 6.6 instructions to load and 5.5 to store, a value of 16 bits 5.2 and 3.9. Told that a kernel has no
//! edges, nvcc makes 2 of a float, or .5 if `Striped`. A warp fills whole sectors, but in chunks of 32 floats only half of each.
//!
//! @par Example
//! @snippet examples/kernels/inside_your_kernel.hpp load
//! @par Without edges
//! @snippet bench/plain_kernels.cuh whole
//! @tparam Size     Coordinates in a chunk.
//! @tparam Striped  Leaves floats as `block_hadamard::put` has them, so that threads exchange none.
template <int Size, bool Striped = false>
struct block_values {
  using chunk = block_chunk<Size>;

  //! @brief This thread's 32 coordinates; zeros where the chunk has none.
  //! @param ctx   The machine.
  //! @param mine  This thread's chunk.
  //! @param from  The whole array, of float, half or bfloat16: `mine.offset` says where the chunk is.
  //! @param v     Receives the coordinates.
  template <block_context Context, gradient_element Element>
  TERSUM_BODY static void load(Context const& ctx,
                               chunk const& mine,
                               Element const* from,
                               float (&v)[32])
  {
    constexpr int count = 16 / static_cast<int>(sizeof(Element));
    from += mine.offset;
    if (detail::moves_in_eights<Size>(from, mine.length)) {
      detail::each_piece<pairs<Element>>(mine, from, [&](Element const* at, int, int i) {
        thread_values<count>::load(ctx, at, v + i);
      });
    } else {
      detail::each_piece<pairs<Element>>(mine, from, [&](Element const* at, int left, int i) {
        TERSUM_UNROLL
        for (int j = 0; j < count; ++j) {
          v[i + j] = j < left ? Context::value(ctx.load(at + j)) : 0.0f;
        }
      });
    }
    if (pairs<Element>) { detail::pair_fours<false>(ctx, mine.thread % 2 != 0, v, v); }
  }

  //! @brief Writes this thread's coordinates that exist, rounded to the nearest element that is finite: beyond the largest half that
  //! is +-65504, as in the means that the library decodes. NaN stays NaN.
  template <block_context Context, gradient_element Element>
  TERSUM_BODY static void store(Context const& ctx,
                                chunk const& mine,
                                float const (&v)[32],
                                Element* to)
  {
    constexpr int count = 16 / static_cast<int>(sizeof(Element));
    float fours[32];
    if (pairs<Element>) { detail::pair_fours<true>(ctx, mine.thread % 2 != 0, v, fours); }
    float const* const from = pairs<Element> ? fours : v;
    to += mine.offset;
    if (detail::moves_in_eights<Size>(to, mine.length)) {
      detail::each_piece<pairs<Element>>(
        mine, to, [&](Element* at, int, int i) { thread_values<count>::store(ctx, from + i, at); });
    } else {
      detail::each_piece<pairs<Element>>(mine, to, [&](Element* at, int left, int i) {
        TERSUM_UNROLL
        for (int j = 0; j < count; ++j) {
          if (j < left) {
            ctx.store(at + j, Context::template finite_element<Element>(from[i + j]));
          }
        }
      });
    }
  }

 private:
  //! Whether two threads move their values together: a chunk of 32 has one thread.
  template <class Element>
  static constexpr bool pairs = !Striped && sizeof(Element) == 4 && Size > 32;
};

}  // namespace tersum::inline v0
