// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of whole arrays. Kernel bodies.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/reduce/saturate_once.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int reduce_threads = tuning_of<Context>.cuda.reduce_threads;
template <class Context>
inline constexpr int reduce_vectors = tuning_of<Context>.cuda.reduce_vectors;

//! @brief Sixteen bytes as the elements of a reduction.
template <class Element>
struct alignas(16) element_vector {
  static constexpr int count = 16 / sizeof(Element);
  Element element[extent(count)];
};

//! @brief to[i] = op(a[i], b[i]) for `count` vectors of 16 bytes; `to` may be `a` or `b`.
template <reduce_op Op, class Context>
TERSUM_BODY void reduce_vectors_of(Context const& ctx,
                                   element_vector<typename Op::element>* to,
                                   element_vector<typename Op::element> const* a,
                                   element_vector<typename Op::element> const* b,
                                   std::size_t count)
{
  using vector            = element_vector<typename Op::element>;
  std::size_t const first = static_cast<std::size_t>(ctx.block_rank()) *
                            (reduce_threads<Context> * reduce_vectors<Context>)+ctx.thread_rank();
  // All loads come before the arithmetic, to keep them in flight together.
  vector x[reduce_vectors<Context>], y[reduce_vectors<Context>];
  TERSUM_UNROLL
  for (unsigned i = 0; i < reduce_vectors<Context>; ++i) {
    if (first + i * reduce_threads<Context> < count) {
      x[i] = ctx.load(a + first + i * reduce_threads<Context>);
      y[i] = ctx.load(b + first + i * reduce_threads<Context>);
    }
  }
  TERSUM_UNROLL
  for (unsigned i = 0; i < reduce_vectors<Context>; ++i) {
    if (first + i * reduce_threads<Context> < count) {
      TERSUM_UNROLL
      for (int k = 0; k < vector::count; ++k) {
        x[i].element[k] = Op{}(x[i].element[k], y[i].element[k]);
      }
      ctx.store(to + first + i * reduce_threads<Context>, x[i]);
    }
  }
}

//! @brief to[i] = op(a[i], b[i]) for `count` elements, one for each thread: the rest of an array that is not whole
//! vectors, or an array that is not aligned.
template <reduce_op Op, class Context>
TERSUM_BODY void reduce_elements(Context const& ctx,
                                 typename Op::element* to,
                                 typename Op::element const* a,
                                 typename Op::element const* b,
                                 std::size_t count)
{
  std::size_t const at =
    static_cast<std::size_t>(ctx.block_rank()) * reduce_threads<Context> + ctx.thread_rank();
  if (at < count) { ctx.store(to + at, Op{}(ctx.load(a + at), ctx.load(b + at))); }
}

//! @brief to[i] = op(a[i], b[i], i) for `count` elements of an operation that depends on the position. A thread has four
//! neighbours, in one access where all arrays are aligned to 16 bytes.
template <class Op, class Context>
TERSUM_BODY void reduce_segments(Context const& ctx,
                                 Op const& op,
                                 std::uint32_t* to,
                                 std::uint32_t const* a,
                                 std::uint32_t const* b,
                                 std::size_t count)
{
  std::size_t const at =
    (static_cast<std::size_t>(ctx.block_rank()) * reduce_threads<Context> + ctx.thread_rank()) * 4;
  bool const aligned = (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(a) |
                        reinterpret_cast<std::uintptr_t>(b)) %
                         16 ==
                       0;
  if (aligned && at + 4 <= count) {
    word4 const x = ctx.load(reinterpret_cast<word4 const*>(a + at));
    word4 const y = ctx.load(reinterpret_cast<word4 const*>(b + at));
    ctx.store(
      reinterpret_cast<word4*>(to + at),
      word4{op(x.x, y.x, at), op(x.y, y.y, at + 1), op(x.z, y.z, at + 2), op(x.w, y.w, at + 3)});
  } else {
    for (std::size_t i = at; i < minimum(at + 4, count); ++i) {
      ctx.store(to + i, op(ctx.load(a + i), ctx.load(b + i), i));
    }
  }
}

//! @brief Arrays that one launch reduces, of which more than `most` take several launches.
template <class Element>
struct array_list {
  static constexpr int most = 64;
  Element const* array[most];
  int count;
};

//! @brief Neighbours that a thread has at once.
template <class Element, int Count>
struct alignas(Count * sizeof(Element)) neighbours {
  Element element[extent(Count)];
};

//! @brief to[i] = op(.. op(op(from[0][i], from[1][i]), from[2][i]) ..) for `count` elements from `first` on: `Count`
//! neighbours a thread, in one access. `to` may be one of the arrays.
template <int Count, class Op, class Context>
TERSUM_BODY void reduce_list(Context const& ctx,
                             [[maybe_unused]] Op const& op,
                             typename Op::element* to,
                             array_list<typename Op::element> const& from,
                             std::size_t first,
                             std::size_t count)
{
  using several = neighbours<typename Op::element, Count>;
  std::size_t const at =
    (static_cast<std::size_t>(ctx.block_rank()) * reduce_threads<Context> + ctx.thread_rank()) *
    Count;
  if (at >= count) { return; }
  auto const load = [&](int i) {
    return ctx.load(reinterpret_cast<several const*>(from.array[i] + first + at));
  };
  several sum = load(0);
  // Four arrays are under way together.
  for (int begin = 1; begin < from.count; begin += 4) {
    several next[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (begin + i < from.count) { next[i] = load(begin + i); }
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (begin + i >= from.count) { break; }
      TERSUM_UNROLL
      for (int k = 0; k < Count; ++k) {
        if constexpr (has_combine_at<Op>) {
          sum.element[k] =
            op(sum.element[k], next[i].element[k], first + at + static_cast<unsigned>(k));
        } else {
          sum.element[k] = Op{}(sum.element[k], next[i].element[k]);
        }
      }
    }
  }
  ctx.store(reinterpret_cast<several*>(to + first + at), sum);
}

//! @brief The arrays of all ranks, for a reduction of all of them in one launch.
template <class Element, int Ranks>
struct rank_arrays {
  Element const* array[extent(Ranks)];
};

//! @brief to[i] = the exact sum of the ranks' lanes, saturated once, for `count` vectors of 16 bytes, one a thread.
template <int Bits, int Ranks, class Context>
TERSUM_BODY void reduce_once(Context const& ctx,
                             word4* to,
                             rank_arrays<word4, Ranks> const& from,
                             std::size_t count)
{
  static_assert(Ranks <= saturate_once<Bits>::max_words,
                "tersum: reduce_once<Bits, Ranks> sums more ranks than saturate_once<Bits> holds");
  std::size_t const at =
    static_cast<std::size_t>(ctx.block_rank()) * reduce_threads<Context> + ctx.thread_rank();
  if (at >= count) { return; }
  saturate_once<Bits> sums[4];
  TERSUM_UNROLL
  for (int rank = 0; rank < Ranks; ++rank) {
    word4 const four = ctx.load(from.array[rank] + at);
    sums[0].add(four.x);
    sums[1].add(four.y);
    sums[2].add(four.z);
    sums[3].add(four.w);
  }
  ctx.store(
    to + at,
    word4{
      sums[0].result(Ranks), sums[1].result(Ranks), sums[2].result(Ranks), sums[3].result(Ranks)});
}

}  // namespace tersum::inline v0::detail
