// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels know of a matrix whose factors are exchanged, and the slices in which the terms of its products are added up.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @brief Slices of the terms of a product, all of one length but the last. They follow from the shape of the matrix alone,
//! so that every device adds in the same order, however many blocks share the work.
//!
//! The sums of the slices are added one after the other. A block of a GPU has 64 elements of the columns of the product and
//! all slices or, where the matrix is *divided*, a single one: see `slice_placement`.
struct product_slices {
  //! Blocks that the slices of one matrix are enough for, if slices of `least` terms are: the multiprocessors of today's GPUs.
  static constexpr std::uint64_t wanted_blocks   = 192;
  static constexpr std::uint64_t undivided_below = 512;  //!< Fewer terms are one slice.
  static constexpr int least_log                 = 5;

  std::uint64_t terms;  //!< Of an element of the product.
  int log;              //!< A slice has 2^log terms.

  //! @param length  Elements of a column of the product.
  [[nodiscard]] static constexpr product_slices of(std::uint64_t length, std::uint64_t terms)
  {
    if (terms < undivided_below) { return {terms, 9}; }
    std::uint64_t const blocks = (length + 63) / 64;
    int log                    = least_log;
    while ((std::uint64_t{1} << log) < terms &&
           blocks * product_slices{terms, log + 1}.count() >= wanted_blocks) {
      ++log;
    }
    return {terms, log};
  }

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t each() const noexcept
  {
    return std::uint64_t{1} << log;
  }
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t count() const noexcept
  {
    return (terms + each() - 1) >> log;
  }
  //! Terms that are multiplied at a time.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr int step() const noexcept
  {
    return 1 << (log < 6 ? log : 6);
  }
};

//! @brief Which matrices of a bucket are divided, and where the sums of their slices lie until they are added. Where nothing
//! is divided the bits are the same.
//!
//! A matrix is divided if its blocks would still work when those of all others have ended.
struct slice_placement {
  static constexpr std::uint32_t undivided = ~std::uint32_t{0};

  //! Thread blocks of divided matrices, at most: what bounds the memory. Sums are counted in 32 bits.
  static constexpr std::uint64_t most_blocks = 2048;
  //! Into so many shares of the bucket's elements: a block that has more than one is too long.
  static constexpr std::uint64_t shares = 256;

  std::uint64_t elements;    //!< Of all matrices.
  std::uint64_t blocks = 0;  //!< Thread blocks of divided matrices so far.
  std::uint64_t sums   = 0;  //!< Floats of their sums so far.

  //! The first sum of the next matrix, or `undivided`.
  [[nodiscard]] constexpr std::uint32_t place(product_slices const& slices,
                                              std::uint64_t length,
                                              std::uint64_t rank) noexcept
  {
    std::uint64_t const more = (length + 63) / 64 * slices.count();
    if (slices.count() < 2 || slices.terms <= elements / (64 * shares) ||
        blocks + more > most_blocks) {
      return undivided;
    }
    auto const first = static_cast<std::uint32_t>(sums);
    blocks += more;
    sums += slices.count() * length * rank;
    return first;
  }
};

}  // namespace detail

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

namespace detail {

//! @brief What of a sum is rounded to the element that travels; what is not finite becomes infinity.
template <class Wire>
[[nodiscard]] TERSUM_INLINE float sent_of_product(float sum, float largest)
{
  float sent = sum;
  if (sizeof(Wire) == 2) { sent = maximum(minimum(sent, largest), -largest); }
  return is_finite(sum) ? sent : bits_float(0x7f800000u);
}

}  // namespace detail

}  // namespace tersum::inline v0
