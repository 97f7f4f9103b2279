// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk between global memory and registers.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/thread_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

namespace detail {

//! @brief The 16 bytes of a chunk that a thread moves at a time: those of all threads fill whole sectors of memory.
//! @tparam Pairs  Of floats: two neighbouring threads move the 16 of a quarter in turn, and `exchange_pieces` makes the loaded arrangement
//!                of them. Otherwise floats are in the order of the chunk, as `block_hadamard::put` has them; elements of 16 bits are in it.
template <bool Pairs, int Size, class Element>
struct chunk_pieces {
  static constexpr int count = 16 / static_cast<int>(sizeof(Element));

  block_chunk<Size> const& mine;
  Element* chunk;
  bool whole;  //!< Whether all exist and are aligned.

  template <class Context>
  TERSUM_BODY chunk_pieces(Context const&, block_chunk<Size> const& its, Element* array)
    : mine{its}, chunk{array + its.offset}, whole{moves_in_eights<Size>(chunk, its.length)}
  {
  }

  //! Calls piece(at, left, i) with each: values i and following are those at `at`, of which `left` exist.
  template <class Piece>
  TERSUM_BODY void each(Piece const& piece) const
  {
    constexpr int in_8  = 8 / count;
    constexpr int each  = Pairs ? 8 : count;
    constexpr int apart = Pairs ? 12 : Size / 8;
    int const thread    = static_cast<int>(mine.thread);
    int const odd       = Pairs ? thread % 2 : 0;
    int const first[2]  = {each * thread - odd * 4, each * thread + apart - odd * 12};
    int const left[2]   = {mine.length - first[0], mine.length - first[1]};
    // Not by first: nvcc would make each address of an edge anew.
    Element* const own   = chunk + each * thread;
    Element* const even  = own + apart;
    Element* const at[2] = {odd == 0 ? own : own - 4, odd == 0 ? even : own};
    TERSUM_UNROLL
    for (int k = 0; k < 32 / count; ++k) {
      int const quarter = k / in_8 * (Size / 4);
      piece(at[k % in_8] + quarter, left[k % in_8] - quarter, k * count);
    }
  }
};

//! @brief The same of chunks of 32, of which each thread has one: two neighbouring threads move both in turn.
template <class Element>
struct chunk_pieces<true, 32, Element> {
  static constexpr int count = 16 / static_cast<int>(sizeof(Element));

  bool whole;
  Element* at[2];
  int left[2];

  template <class Context>
  TERSUM_BODY chunk_pieces(Context const& ctx, block_chunk<32> const& mine, Element* array)
    : whole{moves_in_eights<32>(array + mine.offset, mine.length)}
  {
    auto const peer = [&ctx](auto own) {
      return ctx.shuffle_xor(static_cast<std::uint32_t>(own), 1);
    };
    bool const odd    = ctx.thread_rank() % 2 != 0;
    int const length  = static_cast<int>(peer(mine.length)) - count;
    auto const offset = (peer(mine.offset) | std::uint64_t{peer(mine.offset >> 32)} << 32) + count;
    whole             = (peer(whole) != 0) & whole;
    at[0]             = array + (odd ? offset : mine.offset);
    at[1]             = array + (odd ? mine.offset : offset);
    left[0]           = odd ? length : mine.length;
    left[1]           = odd ? mine.length : length;
  }

  template <class Piece>
  TERSUM_BODY void each(Piece const& piece) const
  {
    TERSUM_UNROLL
    for (int k = 0; k < 32 / count; ++k) {
      int const behind = k / 2 * (2 * count);
      piece(at[k % 2] + behind, left[k % 2] - behind, k * count);
    }
  }
};

//! @brief What a pair of threads has moved in pieces of `Count` values to what each of them has, or back.
template <int Count, bool Back, class Context>
TERSUM_BODY void exchange_pieces(Context const& ctx, float const* from, float* to)
{
  bool const odd = ctx.thread_rank() % 2 != 0;
  TERSUM_UNROLL
  for (int i = 0; i < 32; i += i % Count == Count - 1 ? Count + 1 : 1) {
    float const low = from[i], high = from[i + Count];
    float const other = ctx.shuffle_xor(Back || !odd ? high : low, 1);
    to[i]             = !odd ? low : Back ? other : high;
    to[i + Count]     = Back && odd ? low : other;
  }
}

}  // namespace detail

//! @brief A chunk between global memory and the registers of its threads, as floats in the *loaded* arrangement of `block_chunk`.
//!
//! All threads of the warp call both functions, which need no shared memory. Whole chunks that are aligned move 16 bytes at a time, edges
//! an element. On sm_90 a float takes 6.6 instructions to load and 5.5 to store, a value of 16 bits 5.2 and 3.9. Told that a kernel has no
//! edges, nvcc makes 2 of a float, or .5 if `Striped`. A warp fills whole sectors.
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
    using pieces        = detail::chunk_pieces<pairs<Element>, Size, Element const>;
    constexpr int count = pieces::count;
    pieces const all{ctx, mine, from};
    if (all.whole) {
      all.each([&](Element const* at, int, int i) { thread_values<count>::load(ctx, at, v + i); });
    } else {
      all.each([&](Element const* at, int left, int i) {
        TERSUM_UNROLL
        for (int j = 0; j < count; ++j) {
          v[i + j] = j < left ? Context::value(ctx.load(at + j)) : 0.0f;
        }
      });
    }
    if (pairs<Element>) { detail::exchange_pieces<count, false>(ctx, v, v); }
  }

  //! @brief Writes this thread's coordinates that exist, rounded to the nearest element that is finite: beyond the largest half that
  //! is +-65504, as in the means that the library decodes. NaN stays NaN.
  template <block_context Context, gradient_element Element>
  TERSUM_BODY static void store(Context const& ctx,
                                chunk const& mine,
                                float const (&v)[32],
                                Element* to)
  {
    using pieces        = detail::chunk_pieces<pairs<Element>, Size, Element>;
    constexpr int count = pieces::count;
    float moved[32];
    if (pairs<Element>) { detail::exchange_pieces<count, true>(ctx, v, moved); }
    float const* const from = pairs<Element> ? moved : v;
    pieces const all{ctx, mine, to};
    if (all.whole) {
      all.each([&](Element* at, int, int i) { thread_values<count>::store(ctx, from + i, at); });
    } else {
      all.each([&](Element* at, int left, int i) {
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
  //! Whether two threads move their values together.
  template <class Element>
  static constexpr bool pairs = Size == 32 || (!Striped && sizeof(Element) == 4);
};

}  // namespace tersum::inline v0
