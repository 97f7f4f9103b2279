// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A matrix M as factors P Q^T: products with one factor, and one step of the power iteration.

#pragma once

#include <tersum/execute/executor.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief A matrix of float, half or bfloat16 in the executor's memory, row after row.
template <gradient_element Element>
struct matrix_view {
  Element const* values;  //!< rows * columns of them, aligned to their size.
  std::uint64_t rows;
  std::uint64_t columns;
};

//! @brief A matrix M and the columns of its factors, P of matrix.rows and Q of matrix.columns floats, one after the other.
template <gradient_element Element>
struct factored_matrix {
  matrix_view<Element> matrix;
  int rank;                //!< Columns of P and of Q, 1 to `max_rank`.
  std::span<float> left;   //!< P.
  std::span<float> right;  //!< Q.
};

//! @brief Bytes with which blocks of a device share the terms of long products of a list of matrices; 0 where none is long.
template <gradient_element Element>
[[nodiscard]] constexpr std::size_t product_workspace_bytes(
  std::span<factored_matrix<Element> const> batch) noexcept;

//! @brief left = M right, of each of several matrices of any sizes and ranks: P of Q.
//!
//! *Reads* the matrices and `right`; *writes* `left`. All arrays are apart, in the executor's memory, aligned to their
//! elements; that factors of different matrices are apart is not checked. The list itself lies in the host's memory and is not
//! needed after the call. *Needs* no workspace; with `product_workspace_bytes` of it, apart from all else and
//! aligned to floats, more blocks of a device share the work of a long matrix, in a second launch. *Errors*: a rank out of
//! range, an array of another size, a workspace that is neither empty nor large enough, a null or misaligned address, an
//! overlap. Products are added in float, in blocks of 64 terms and in the slices that the shape has (docs/low_rank.md); a sum
//! that is not finite becomes infinity. On every executor, with a workspace or without, the results have the bits that
//! `low_rank_codec` makes. Up to 32 matrices take the launches of one, each further 32 as many again. Enqueued on the
//! executor; does not synchronize.
template <executor Executor, gradient_element Element>
[[nodiscard]] status left_factors(Executor const& exec,
                                  std::span<factored_matrix<Element> const> batch,
                                  std::span<std::byte> workspace = {});

//! @brief right = M^T left: Q of P. Memory, errors and stream are as for `left_factors`, with the sides exchanged.
template <executor Executor, gradient_element Element>
[[nodiscard]] status right_factors(Executor const& exec,
                                   std::span<factored_matrix<Element> const> batch,
                                   std::span<std::byte> workspace = {});

//! @brief One step: P = M Q, its columns made orthonormal, and Q = M^T P. Then P Q^T approximates M, better with every call.
//!
//! *Reads* the matrices, *reads and writes* `right`, from which the iteration starts and whose columns must not be zero, *writes*
//! `left`: the conditions and errors of `left_factors`. Ranks that compress the sum of their matrices call the three parts
//! instead, and reduce P and Q in between: that is PowerSGD, and makes the factors of `low_rank_codec`. Three launches, with a
//! workspace up to five.
//!
//! @par Example
//! @snippet tests/device/low_rank_cases.hpp power_iteration
template <executor Executor, orthogonalizer Orthogonalizer, gradient_element Element>
[[nodiscard]] status power_iteration(Executor const& exec,
                                     Orthogonalizer const& orthogonalizer,
                                     std::span<factored_matrix<Element> const> batch,
                                     std::span<std::byte> workspace = {});

}  // namespace tersum::inline v0

#include <tersum/device/detail/power_iteration.ipp>
