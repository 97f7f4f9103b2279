// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a reduction of two arrays works on.

#pragma once

#include <cstddef>

namespace tersum::inline v0::detail {

//! @brief to[i] = op(a[i], b[i]) for `count` elements; `to` may be `a` or `b`.
//!
//! Reductions that decode and encode are done chunk by chunk instead of element by element. They bring functions
//! requantize_array(threads, instruction_set, array_operands<Op>) and requantize_array(executor, array_operands<Op>), which
//! executors find by this argument.
template <class Op>
struct array_operands {
  typename Op::element* to;
  typename Op::element const* a;
  typename Op::element const* b;
  std::size_t count;
};

}  // namespace tersum::inline v0::detail
