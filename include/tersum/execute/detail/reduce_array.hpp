// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of arrays on the CPU.

#pragma once

#include <tersum/execute/instruction_set.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/tuning.hpp>

#include <cstddef>

namespace tersum::inline v0::detail {

//! @brief to[i] = op(a[i], b[i]) on some threads, one share of the array for each; `to` may be `a` or `b`.
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
  using element = typename Op::element;
  each_share_of_array<element>(
    threads, count, least_bytes, [&](std::size_t first, std::size_t last) {
      reduce_share(set, op, to, a, b, count, first, last);
    });
}

}  // namespace tersum::inline v0::detail
