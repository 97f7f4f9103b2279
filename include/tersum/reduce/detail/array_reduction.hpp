// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of whole arrays, in kernels.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Arrays that one launch reduces, of which more than `most` take several launches.
template <class Element>
struct array_list {
  static constexpr int most = 64;
  Element const* array[most];
  int count;
};

template <class Context>
inline constexpr int reduce_threads = tuning_of<Context>.cuda.reduce_threads;
template <class Context>
inline constexpr int reduce_vectors = tuning_of<Context>.cuda.reduce_vectors;

//! Whether a kernel does an operation on two elements in a word.
template <class Op>
inline constexpr bool adds_pairs =
  std::is_same_v<Op, native_sum<half>> || std::is_same_v<Op, native_sum<bfloat16>>;

//! @brief Neighbours that a thread has at once.
template <class Element, int Count>
struct alignas(Count * sizeof(Element)) neighbours {
  Element element[extent(Count)];
};

//! @brief Elements in sixteen bytes.
template <class Element>
inline constexpr int in_vector = 16 / static_cast<int>(sizeof(Element));

//! @brief Whether addresses are multiples of 16.
template <class... Element>
[[nodiscard]] TERSUM_INLINE bool are_aligned(Element*... at) noexcept
{
  return (... | reinterpret_cast<std::uintptr_t>(at)) % 16 == 0;
}

//! @brief a[k] = op(a[k], b[k]) for neighbours of an array, of which the first is element `at`. Sums of 16 bits are done two at
//! a time, in the words that hold them.
template <class Op, int Count, class Context>
TERSUM_BODY void combine(Context const&,
                         [[maybe_unused]] Op const& op,
                         neighbours<typename Op::element, Count>& a,
                         neighbours<typename Op::element, Count> const& b,
                         [[maybe_unused]] std::size_t at)
{
  using element = typename Op::element;
  if constexpr (adds_pairs<Op> && Count % 2 == 0) {
    struct words {
      std::uint32_t word[extent(Count / 2)];
    };
    auto sum        = bit_cast<words>(a);
    auto const next = bit_cast<words>(b);
    TERSUM_UNROLL
    for (int k = 0; k < Count / 2; ++k) {
      sum.word[k] = Context::template add_pair<element>(sum.word[k], next.word[k]);
    }
    a = bit_cast<neighbours<element, Count>>(sum);
  } else if constexpr (adds_pairs<Op>) {
    TERSUM_UNROLL
    for (int k = 0; k < Count; ++k) {
      auto const sum = Context::template add_pair<element>(a.element[k].bits, b.element[k].bits);
      a.element[k]   = element::from_bits(static_cast<std::uint16_t>(sum));
    }
  } else {
    TERSUM_UNROLL
    for (int k = 0; k < Count; ++k) {
      if constexpr (has_combine_at<Op>) {
        a.element[k] = op(a.element[k], b.element[k], at + static_cast<unsigned>(k));
      } else {
        a.element[k] = Op{}(a.element[k], b.element[k]);
      }
    }
  }
}

//! @brief to[i] = op(a[i], b[i]) for `count` times `Count` neighbours; `to` may be `a` or `b`. A thread has one element, or some vectors.
template <class Op, int Count>
struct reduce_neighbours {
  using several                 = neighbours<typename Op::element, Count>;
  static constexpr auto threads = &cuda_tuning::reduce_threads;
  static constexpr int shared   = 0;

  several* to;
  several const* a;
  several const* b;
  std::size_t count;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    constexpr unsigned each  = Count > 1 ? reduce_vectors<Context> : 1,
                       apart = reduce_threads<Context>;
    std::size_t const first =
      static_cast<std::size_t>(ctx.block_rank()) * (apart * each) + ctx.thread_rank();
    if (Count == 1 && first >= count) { return; }
    // All loads come before the arithmetic, to keep them in flight together.
    several x[each], y[each];
    TERSUM_UNROLL
    for (unsigned i = 0; i < each; ++i) {
      if (first + i * apart < count) {
        x[i] = ctx.load(a + first + i * apart);
        y[i] = ctx.load(b + first + i * apart);
      }
    }
    TERSUM_UNROLL
    for (unsigned i = 0; i < each; ++i) {
      if (first + i * apart < count) {
        combine<Op, Count>(ctx, Op{}, x[i], y[i], 0);
        ctx.store(to + first + i * apart, x[i]);
      }
    }
  }
};

//! Whole vectors of 16 bytes.
template <class Op>
struct reduce_vectors_kernel : reduce_neighbours<Op, in_vector<typename Op::element>> {
};

//! The rest of an array that is not whole vectors, or an array that is not aligned.
template <class Op>
struct reduce_elements_kernel : reduce_neighbours<Op, 1> {
};

//! @brief to[i] = op(a[i], b[i], i) for `count` elements of an operation that depends on the position. A thread has four
//! neighbours, in one access where all arrays are aligned to 16 bytes.
template <class Op>
struct reduce_segments_kernel {
  static constexpr auto threads = &cuda_tuning::reduce_threads;
  static constexpr int shared   = 0;

  Op op;
  std::uint32_t* to;
  std::uint32_t const* a;
  std::uint32_t const* b;
  std::size_t count;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    std::size_t const at =
      (static_cast<std::size_t>(ctx.block_rank()) * reduce_threads<Context> + ctx.thread_rank()) *
      4;
    if (are_aligned(to, a, b) && at + 4 <= count) {
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
};

//! @brief Calls launch<neighbours>(first, count) for the vectors of 16 bytes among `count` elements, of which arrays that are not
//! `aligned` have none, and for the other elements.
template <class Element, class Launch>
[[nodiscard]] status launch_in_vectors(bool aligned, std::size_t count, Launch const& launch)
{
  std::size_t const done = aligned ? count / in_vector<Element> * in_vector<Element> : 0;
  status const s         = launch.template operator()<in_vector<Element>>(0, done);
  return s.ok() ? launch.template operator()<1>(done, count - done) : s;
}

//! @brief to[i] = op(a[i], b[i]) for `count` elements, in kernels; `to` may be `a` or `b`.
template <class Executor, reduce_op Op>
[[nodiscard]] status reduce_on_blocks(Executor const& exec,
                                      [[maybe_unused]] Op const& op,
                                      typename Op::element* to,
                                      typename Op::element const* a,
                                      typename Op::element const* b,
                                      std::size_t count)
{
  constexpr cuda_tuning tuned = tuning_of<Executor>.cuda;
  constexpr int threads       = tuned.reduce_threads;
  if constexpr (has_combine_at<Op>) {
    return exec.run(reduce_segments_kernel<Op>{op, to, a, b, count}, divide_up(count, threads * 4));
  } else {
    auto const run = [&]<int Count>(std::size_t first, std::size_t here) {
      using kernel =
        std::conditional_t<Count == 1, reduce_elements_kernel<Op>, reduce_vectors_kernel<Op>>;
      using several      = typename kernel::several;
      constexpr int each = Count > 1 ? tuned.reduce_vectors : 1;
      return exec.run(kernel{{reinterpret_cast<several*>(to + first),
                              reinterpret_cast<several const*>(a + first),
                              reinterpret_cast<several const*>(b + first),
                              here / Count}},
                      divide_up(here / Count, threads * each));
    };
    return launch_in_vectors<typename Op::element>(are_aligned(to, a, b), count, run);
  }
}

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
      combine<Op, Count>(ctx, op, sum, next[i], first + at);
    }
  }
  ctx.store(reinterpret_cast<several*>(to + first + at), sum);
}

//! Neighbours of `Count` elements of some arrays, from element `first` on.
template <class Op, int Count>
struct reduce_list_kernel {
  static constexpr auto threads = &cuda_tuning::reduce_threads;
  static constexpr int shared   = 0;

  Op op;
  typename Op::element* to;
  array_list<typename Op::element> from;
  std::size_t first;
  std::size_t count;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    reduce_list<Count>(ctx, op, to, from, first, count);
  }
};

template <class Executor, class Op>
[[nodiscard]] status reduce_on_blocks(Executor const& exec,
                                      Op const& op,
                                      std::span<typename Op::element> to,
                                      array_list<typename Op::element> const& from)
{
  bool aligned = are_aligned(to.data());
  for (int i = 0; i < from.count; ++i) { aligned = aligned && are_aligned(from.array[i]); }
  return launch_in_vectors<typename Op::element>(
    aligned, to.size(), [&]<int Count>(std::size_t first, std::size_t here) {
      return exec.run(reduce_list_kernel<Op, Count>{op, to.data(), from, first, here},
                      divide_up(here / Count, tuning_of<Executor>.cuda.reduce_threads));
    });
}

}  // namespace tersum::inline v0::detail
