// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels know of a matrix whose factors are exchanged.

#pragma once

#include <tersum/config.hpp>
#include <tersum/lowrank/detail/product_slices.hpp>

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
  //! Thread blocks before that make products, in even and odd turns: one for 64 elements of the columns of a factor or, of a
  //! divided matrix, one for each slice of their terms.
  std::uint64_t first_product[2];
  //! First of the sums of its slices in memory, in even and odd turns, or `undivided`: then a block adds up all slices.
  std::uint32_t first_partial[2];
  std::uint32_t
    slice_log[2];  //!< Logarithms to base 2 of the terms of a slice, in even and odd turns.

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool sends_rows(int turn) const noexcept
  {
    return (turn == 0) != (swapped != 0);
  }
  //! Elements of one column of the factor that a turn sends.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t length(int turn) const noexcept
  {
    return sends_rows(turn) ? rows : columns;
  }
  //! Blocks of 64 elements of such a column.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t blocks(int turn) const noexcept
  {
    return (length(turn) + 63) / 64;
  }
  //! The slices of the terms of its elements.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr detail::product_slices slices(int turn) const noexcept
  {
    return {length(1 - turn), static_cast<int>(slice_log[turn])};
  }
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool is_divided(int turn) const noexcept
  {
    return first_partial[turn] != detail::slice_placement::undivided;
  }
};
static_assert(sizeof(matrix_record) == 112);

}  // namespace tersum::inline v0
