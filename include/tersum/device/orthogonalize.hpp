// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The columns of tall factors made orthonormal.

#pragma once

#include <tersum/execute/executor.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/status.hpp>

#include <span>

namespace tersum::inline v0 {

//! @brief A factor: `columns` columns one after the other, of values.size() / columns floats.
struct factor_view {
  std::span<float> values;
  int columns;  //!< 1 to `max_rank`.
};

//! @brief Makes the columns of factors of any sizes orthonormal in place; they keep their span, and dependent ones become zero.
//!
//! *Reads and writes* the factors, which lie in the executor's memory, aligned to their elements, and are apart, which is not
//! checked. The list itself lies in the host's memory and is not needed after the call. *Needs* no workspace. *Errors*: a number
//! of columns out of range, or that does not divide a factor's size; a null or misaligned address.
//!
//! The columns are those that `low_rank_codec` makes of the same factor. Every executor adds in the same order, in double. If a
//! value of a factor is not finite, the columns of this factor are not finite either. Enqueued on the executor: a launch of a
//! block a factor for up to 64 factors, one more for each further 64; a thread of the CPU takes a factor at a time. Does not
//! synchronize.
//! @param orthogonalizer  `robust_cholesky_qr2`, `gram_schmidt`, or one of your own.
//!
//! @par Example
//! @snippet tests/device/low_rank_cases.hpp orthogonalize
template <executor Executor, orthogonalizer Orthogonalizer>
[[nodiscard]] status orthogonalize(Executor const& exec,
                                   Orthogonalizer const& orthogonalizer,
                                   std::span<factor_view const> factors);

}  // namespace tersum::inline v0

#include <tersum/device/detail/orthogonalize.ipp>
