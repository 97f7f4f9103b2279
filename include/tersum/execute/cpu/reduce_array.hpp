// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of arrays on the CPU.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/execute/cpu/parallel_for.hpp>
#include <tersum/execute/cpu/vector_kernels.hpp>
#include <tersum/reduce/native.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief One stretch: a plain loop that each instruction set's compiler vectorizes.
template <class Op>
void reduce_stretch_baseline(typename Op::element* to,
                             typename Op::element const* a,
                             typename Op::element const* b,
                             std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}

#if defined(__x86_64__)
template <class Op>
__attribute__((target("avx2,fma,f16c"))) void reduce_stretch_avx2(typename Op::element* to,
                                                                  typename Op::element const* a,
                                                                  typename Op::element const* b,
                                                                  std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}

template <class Op>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) void
reduce_stretch_avx512(typename Op::element* to,
                      typename Op::element const* a,
                      typename Op::element const* b,
                      std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}
#endif

//! @brief to[i] = op(a[i], b[i]) on some threads; `to` may be `a` or `b`.
template <class Op>
void reduce_array(int threads,
                  [[maybe_unused]] instruction_set set,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  std::size_t count)
{
  constexpr std::size_t stretch = 65536 / sizeof(typename Op::element);
  parallel_for(threads, (count + stretch - 1) / stretch, [&](std::uint64_t i) {
    std::size_t const first = i * stretch;
    std::size_t const here  = std::min(stretch, count - first);
    if constexpr (std::is_same_v<Op, native_sum<half>> ||
                  std::is_same_v<Op, native_sum<bfloat16>>) {
      return add_values(set, a + first, b + first, to + first, here);
    }
#if defined(__x86_64__)
    if (set == instruction_set::avx512) {
      return reduce_stretch_avx512<Op>(to + first, a + first, b + first, here);
    }
    if (set == instruction_set::avx2) {
      return reduce_stretch_avx2<Op>(to + first, a + first, b + first, here);
    }
#endif
    reduce_stretch_baseline<Op>(to + first, a + first, b + first, here);
  });
}

}  // namespace tersum::inline v0::detail
