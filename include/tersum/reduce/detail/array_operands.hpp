// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a reduction of arrays works on.

#pragma once

#include <cstddef>

namespace tersum::inline v0::detail {

//! @brief to[i] = op(a[i], b[i]) for `count` elements; `to` may be `a` or `b`.
//!
//! Reductions that decode and encode are done chunk by chunk instead of element by element. They bring functions
//! requantize_array(threads, instruction_set, on) and requantize_array(executor, on), which executors find by this argument,
//! and `device/reduce.hpp` by a list of arrays.
template <class Op>
struct array_operands {
  typename Op::element* to;
  typename Op::element const* a;
  typename Op::element const* b;
  std::size_t count;
};

//! @brief Arrays that one launch reduces, of which more than `most` take several launches.
template <class Element>
struct array_list {
  static constexpr int most = 64;
  Element const* array[most];
  int count;
};

//! @brief to[i] = op(.. op(op(from[0][i], from[1][i]), from[2][i]) ..) for `count` elements of at least two arrays; `to` may be
//! from[0].
template <class Op>
struct list_operands {
  typename Op::element* to;
  array_list<typename Op::element> from;
  std::size_t count;
};

}  // namespace tersum::inline v0::detail
