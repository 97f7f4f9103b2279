// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of whole arrays. Kernel bodies.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/reduce/saturate_once.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

inline constexpr int reduce_threads =
  256;  //!< Threads of a block, four accesses of sixteen bytes each.
inline constexpr int reduce_vectors = 4;

//! @brief Sixteen bytes as the elements of a reduction.
template <class Element>
struct alignas(16) element_vector {
  static constexpr int count = 16 / sizeof(Element);
  Element element[count];
};

//! @brief to[i] = op(a[i], b[i]); `to` may be `a` or `b`. The vectors take 16 bytes where all three are aligned.
template <reduce_op Op, class Context>
TERSUM_BODY void reduce_pairs(Context const& ctx,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count)
{
  using element = typename Op::element;
  using vector  = element_vector<element>;
  auto const misplace =
    (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(a) |
     reinterpret_cast<std::uintptr_t>(b)) %
    16;
  std::size_t const vectors = misplace == 0 ? count / vector::count : 0;
  std::size_t const block =
    static_cast<std::size_t>(ctx.block_rank()) * (reduce_threads * reduce_vectors);
  TERSUM_UNROLL
  for (unsigned i = 0; i < reduce_vectors; ++i) {
    std::size_t const at = block + i * reduce_threads + ctx.thread_rank();
    if (at < vectors) {
      vector const x = ctx.load(reinterpret_cast<vector const*>(a) + at);
      vector const y = ctx.load(reinterpret_cast<vector const*>(b) + at);
      vector z;
      TERSUM_UNROLL
      for (int k = 0; k < vector::count; ++k) { z.element[k] = Op{}(x.element[k], y.element[k]); }
      ctx.store(reinterpret_cast<vector*>(to) + at, z);
    } else {
      // Beyond the vectors: what is left of an aligned array, or all of another.
      std::size_t const begin = vectors * vector::count + (at - vectors) * vector::count;
      for (std::size_t k = begin; k < begin + vector::count && k < count; ++k) {
        ctx.store(to + k, Op{}(ctx.load(a + k), ctx.load(b + k)));
      }
    }
  }
}

//! @brief Blocks that `reduce_pairs` and `reduce_once` need.
template <class Element>
[[nodiscard]] constexpr std::size_t reduce_blocks(std::size_t count) noexcept
{
  constexpr std::size_t a_block = reduce_threads * reduce_vectors * element_vector<Element>::count;
  return (count + a_block - 1) / a_block;
}

//! @brief The arrays of all ranks, for reductions in one go.
template <class Element>
struct rank_arrays {
  static constexpr int capacity = 16;
  Element const* array[capacity];
  int count;
};

//! @brief to[i] = the exact sum of the ranks' lanes, saturated once. Arrays are aligned to 16 bytes; one word4 a thread.
template <int Bits, class Context>
TERSUM_BODY void reduce_once(Context const& ctx,
                             std::uint32_t* to,
                             rank_arrays<std::uint32_t> const& from,
                             std::size_t count)
{
  std::size_t const at =
    static_cast<std::size_t>(ctx.block_rank()) * reduce_threads + ctx.thread_rank();
  if (at * 4 + 4 <= count) {
    saturate_once<Bits> sums[4];
    for (int rank = 0; rank < from.count; ++rank) {
      word4 const four = ctx.load(reinterpret_cast<word4 const*>(from.array[rank]) + at);
      sums[0].add(four.x);
      sums[1].add(four.y);
      sums[2].add(four.z);
      sums[3].add(four.w);
    }
    ctx.store(reinterpret_cast<word4*>(to) + at,
              word4{sums[0].result(from.count),
                    sums[1].result(from.count),
                    sums[2].result(from.count),
                    sums[3].result(from.count)});
  } else {
    for (std::size_t k = at * 4; k < count; ++k) {
      saturate_once<Bits> sum;
      for (int rank = 0; rank < from.count; ++rank) { sum.add(ctx.load(from.array[rank] + k)); }
      ctx.store(to + k, sum.result(from.count));
    }
  }
}

}  // namespace tersum::inline v0::detail
