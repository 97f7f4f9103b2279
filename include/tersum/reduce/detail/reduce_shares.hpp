// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction on the CPU, of the share of an array that a thread has.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief to[i] = op(a[i], b[i]); `to` may be `a` or `b`.
template <class Op>
void reduce_range(instruction_set set,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  std::size_t count)
{
  if constexpr (std::is_same_v<Op, native_sum<half>> || std::is_same_v<Op, native_sum<bfloat16>>) {
    return add_values(set, a, b, to, count);
  }
  reduce_stretch<Op>(set, to, a, b, count);
}

//! @brief to[i] = op(.. op(op(from[0][i], from[1][i]), from[2][i]) ..) of `arrays` arrays, at least two, on some threads. A share, of
//! whole lines of the cache and at least `least_bytes`, goes through all of them a stretch at a time, which the cache holds in between.
//! `to` may be from[0], or of two arrays from[1].
template <class Op>
void reduce_arrays(int threads,
                   instruction_set set,
                   Op const& op,
                   typename Op::element* to,
                   typename Op::element const* const* from,
                   std::size_t arrays,
                   std::size_t count,
                   std::size_t least_bytes = tuning{}.cpu.least_reduced)
{
  using element             = typename Op::element;
  std::size_t const least   = maximum<std::size_t>(least_bytes / sizeof(element), 1);
  std::size_t const stretch = arrays == 2 ? count : 16384 / sizeof(element);
  auto const reduce = [&](element const* a, element const* b, std::size_t first, std::size_t last) {
    auto const reduce_part = [&]<class Part>(Part const&, std::size_t begin, std::size_t end) {
      begin = std::max(begin, first);
      end   = std::min(end, last);
      if (begin < end) { reduce_range<Part>(set, to + begin, a + begin, b + begin, end - begin); }
    };
    if constexpr (has_combine_at<Op>) {
      op.for_each_part(count, reduce_part);
    } else {
      reduce_part(op, 0, count);
    }
  };
  each_share(threads, count, least, 64 / sizeof(element), [&](std::size_t first, std::size_t last) {
    for (std::size_t begin = first; begin < last; begin += stretch) {
      std::size_t const end = std::min(begin + stretch, last);
      for (std::size_t i = 1; i < arrays; ++i) {
        reduce(i == 1 ? from[0] : to, from[i], begin, end);
      }
    }
  });
}

//! @brief to[i] = op(a[i], b[i]) on some threads; `to` may be `a` or `b`.
template <class Op>
void reduce_array(int threads,
                  instruction_set set,
                  Op const& op,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  std::size_t count,
                  std::size_t least_bytes = tuning{}.cpu.least_reduced)
{
  typename Op::element const* const both[] = {a, b};
  reduce_arrays(threads, set, op, to, both, 2, count, least_bytes);
}

}  // namespace tersum::inline v0::detail
