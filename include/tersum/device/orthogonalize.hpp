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

//! @brief Makes the columns of a factor orthonormal in place; they keep their span, and dependent ones become zero.
//!
//! *Reads and writes* `factor`: `columns` columns one after the other, of factor.size() / columns floats, in the executor's
//! memory, aligned to its elements. *Needs* no workspace. *Errors*: a number of columns out of range, or that does not divide
//! factor.size(); a null or misaligned address.
//!
//! The columns are those that `low_rank_codec` makes of the same factor. Every executor adds in the same order, in double. If a
//! value of a factor is not finite, the columns of this factor are not finite either. Enqueued on the executor, one launch of a
//! block a factor; a thread of the CPU takes a factor at a time. Does not synchronize.
//! @param orthogonalizer  `robust_cholesky_qr2`, `gram_schmidt`, or one of your own.
//! @param columns         1 to `max_rank`.
//!
//! @par Example
//! @snippet tests/device/low_rank_cases.hpp orthogonalize
template <executor Executor, orthogonalizer Orthogonalizer>
[[nodiscard]] status orthogonalize(Executor const& exec,
                                   Orthogonalizer const& orthogonalizer,
                                   std::span<float> factor,
                                   int columns);

//! @brief One factor of many: `columns` columns one after the other.
struct factor_view {
  std::span<float> values;
  int columns;
};

//! @brief The same of factors of any sizes, each with the columns that it would have alone.
//!
//! The list itself lies in the host's memory and is not needed after the call; the factors are apart, which is not checked. One
//! launch of a block a factor for up to 64 factors, one more for each further 64. *Errors*: those of one factor.
template <executor Executor, orthogonalizer Orthogonalizer>
[[nodiscard]] status orthogonalize(Executor const& exec,
                                   Orthogonalizer const& orthogonalizer,
                                   std::span<factor_view const> factors);

}  // namespace tersum::inline v0

#include <tersum/device/detail/orthogonalize.ipp>
