// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels know of a matrix whose factors are exchanged.

#pragma once

#include <tersum/config.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief One matrix as kernels see it; part of the state.
//!
//! A *turn* sends one factor of each matrix. A paired exchange has two turns: P in turn 0, Q in turn 1. An alternating
//! exchange is one turn; in even ones a matrix sends P, or, if it is `swapped`, Q.
struct matrix_record {
  std::uint64_t offset;   //!< First coordinate in the gradient.
  std::uint64_t rows;     //!< Length of a column of P.
  std::uint64_t columns;  //!< Length of a column of Q.
  std::uint64_t
    slot[2];  //!< First element of its factor in even and in odd turns, on the wire and in memory.
  std::uint64_t first_block
    [2];  //!< Blocks of 64 elements of the columns of the factors before, in even and odd turns.
  std::uint64_t first_rows;  //!< Blocks of 64 rows of the matrices before.
  std::uint32_t rank;        //!< Columns of P and of Q.
  std::uint32_t swapped;     //!< 1: it sends Q in even turns, 0: P.
  std::uint64_t turns;       //!< Exchanges that went into the warm start.

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool sends_rows(int turn) const noexcept
  {
    return (turn == 0) != (swapped != 0);
  }
  //! Elements of one column of the factor that a turn sends.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t length(int turn) const noexcept
  {
    return sends_rows(turn) ? rows : columns;
  }
};
static_assert(sizeof(matrix_record) == 80);

}  // namespace tersum::inline v0
