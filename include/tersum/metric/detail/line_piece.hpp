// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The lines of one tensor, which are its rows, its columns and the whole of it, and the sums of their squares.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::inline v0::detail {

//! sum + a b where the product of two floats is exact in double: rounded once, whether a compiler contracts it or not. Devices are
//! told to, since their simulator takes no contraction that is left open.
[[nodiscard]] TERSUM_INLINE double add_product(double a, double b, double sum)
{
#if defined(__CUDA_ARCH__)
  return ::fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

//! @brief What a gradient has of one tensor under a factored metric. Plain data.
//!
//! Its sums are two of the whole, then those of the stretches of each row, then those of the first stretch of all columns,
//! and so on.
struct line_piece {
  std::uint64_t offset;  //!< Its first coordinate in the gradient.
  std::uint64_t skip;    //!< Coordinates of its first row that the gradient does not have.
  std::uint64_t size;    //!< Its coordinates.
  std::uint64_t columns;
  std::uint64_t first_line;  //!< Among those of all tensors.
  std::uint64_t first_sum;

  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t rows() const
  {
    return divide_up(skip + size, columns);
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t lines() const { return rows() + columns + 1; }

  //! @name Stretches: 256 columns or 64 rows, or more, so that no line has more than 256 of them
  //! @{
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t row_stretch() const
  {
    return divide_up(maximum(divide_up(columns, 256), std::uint64_t{256}), 8) * 8;
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t column_stretch() const
  {
    return maximum(divide_up(rows(), 256), std::uint64_t{64});
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t row_parts() const
  {
    return divide_up(columns, row_stretch());
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t column_parts() const
  {
    return divide_up(rows(), column_stretch());
  }
  //! @}
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t column_groups() const
  {
    return divide_up(columns, 8);
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t first_column_sum() const
  {
    return first_sum + 2 + rows() * row_parts();
  }
  //! Where the first sum of a row or column lies.
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t sum_of_line(std::uint64_t line) const
  {
    return line < rows() ? first_sum + 2 + line * row_parts() : first_column_sum() + line - rows();
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t sums() const
  {
    return 2 + rows() * row_parts() + columns * column_parts();
  }
  //! How many coordinates a line has in the gradient.
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t length(std::uint64_t line) const
  {
    std::uint64_t const count = rows();
    std::uint64_t const end   = skip + size;
    if (line < count) { return minimum((line + 1) * columns, end) - maximum(line * columns, skip); }
    if (line == count + columns) { return size; }
    std::uint64_t const column = line - count;
    return count - (column < skip ? 1 : 0) - ((count - 1) * columns + column >= end ? 1 : 0);
  }

 private:
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint64_t divide_up(std::uint64_t a,
                                                                       std::uint64_t b)
  {
    return (a + b - 1) / b;
  }
};

}  // namespace tersum::inline v0::detail
