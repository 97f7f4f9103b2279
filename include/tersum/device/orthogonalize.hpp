// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The columns of a tall factor made orthonormal.

#pragma once

#include <tersum/execute/executor.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/status.hpp>

#include <span>

namespace tersum::inline v0 {

//! @brief Makes the columns of a factor orthonormal in place; they keep their span, and dependent ones become zero.
//!
//! *Reads and writes* `factor`: `columns` columns of factor.size() / columns floats, one after the other, in the executor's
//! memory, aligned to its elements. *Needs* no workspace. *Errors*: a number of columns out of range, or one that does not
//! divide factor.size(); a null or misaligned address.
//!
//! The columns are those that `low_rank_codec` makes of the same factor. Every executor adds in the same order, in double. If a
//! value of the factor is not finite, the columns are not finite either. Enqueued on the executor, one launch of one block;
//! does not synchronize.
//! @param orthogonalizer  `robust_cholesky_qr2`, `cholesky_qr2`, `gram_schmidt`, or one of your own.
//! @param columns         1 to `max_rank`.
template <executor Executor, orthogonalizer Orthogonalizer>
[[nodiscard]] status orthogonalize(Executor const& exec,
                                   Orthogonalizer const& orthogonalizer,
                                   std::span<float> factor,
                                   int columns);

}  // namespace tersum::inline v0

#include <tersum/device/detail/orthogonalize.ipp>
