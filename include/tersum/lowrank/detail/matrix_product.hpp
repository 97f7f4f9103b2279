// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One product of a matrix and a factor, in memory.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/detail/product_slices.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

//! @brief What is multiplied, and where sums go: of an exchange and of a call of `left_factor`, on every executor.
template <class Wire>
struct matrix_product {
  float const* from    = nullptr;  //!< The factor that is multiplied, column after column.
  std::uint64_t offset = 0;        //!< First element of the matrix in what it is read from.
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t length;  //!< Of a column of the product: rows or columns.
  std::uint32_t rank;
  bool of_rows;  //!< The product has the rows of the matrix: M Q rather than M^T P.
  product_slices slices = {};
  Wire* to              = nullptr;  //!< The product, column after column.
  float* sums =
    nullptr;  //!< A float for each element of it, for what is carried from slice to slice; may be `to`.
  float* partials = nullptr;  //!< Sums of slices of all products.
  //! Its own ones if each slice is a block of its own.
  std::uint32_t first_partial = slice_placement::undivided;
  //! Of 16-bit elements: finite products end there, at either sign.
  float largest = std::numeric_limits<float>::infinity();

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool is_divided() const noexcept
  {
    return first_partial != slice_placement::undivided;
  }
  //! Blocks of 64 rows or columns.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t blocks() const noexcept
  {
    return (length + 63) / 64;
  }
};

//! @brief What of a sum is rounded to the element that travels; what is not finite becomes infinity.
template <class Wire>
[[nodiscard]] TERSUM_INLINE float sent_of_product(float sum, [[maybe_unused]] float largest)
{
  float sent = sum;
  if constexpr (sizeof(Wire) == 2) { sent = maximum(minimum(sent, largest), -largest); }
  return is_finite(sum) ? sent : bits_float(0x7f800000u);
}

}  // namespace tersum::inline v0::detail
