// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The lines of one tensor, which are its rows, its columns and the whole of it, and the sums of their squares.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

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
  std::uint64_t first_line;   //!< Among those of all tensors.
  std::uint64_t first_sum;    //!< Likewise.
  std::uint64_t first_share;  //!< Likewise, a multiple of four.
  std::uint64_t first_chunk;

  //! @name What follows from size, skip and columns
  //! Stretches are of 256 columns or 64 rows, or more, so that no line has more than 256 of them. Beyond 2^30 coordinates, where both
  //! would be longer, only those of columns are.
  //! @{
  std::uint64_t row_count;
  std::uint64_t row_stretch;     //!< Columns.
  std::uint64_t column_stretch;  //!< Rows.

  constexpr void derive()
  {
    row_count      = divide_up(skip + size, columns);
    column_stretch = maximum(divide_up(row_count, 256), std::uint64_t{64});
    row_stretch    = 256;
    if (column_stretch == 64) {
      row_stretch = divide_up(maximum(divide_up(columns, 256), row_stretch), 8) * 8;
    }
  }
  //! @}

  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t rows() const { return row_count; }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t lines() const { return rows() + columns + 1; }

  //! @name How many stretches a line has
  //! @{
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t row_parts() const
  {
    return divide_up(columns, row_stretch);
  }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t column_parts() const
  {
    return divide_up(rows(), column_stretch);
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
  //! Stretches of rows times stretches of columns.
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t tiles() const
  {
    return row_parts() * column_parts();
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

  //! Shares of columns, and what fills them up to whole sixteen bytes.
  [[nodiscard]] TERSUM_INLINE constexpr std::uint64_t shares() const
  {
    return divide_up(columns, 4) * 4;
  }
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint64_t divide_up(std::uint64_t a,
                                                                       std::uint64_t b)
  {
    return (a + b - 1) / b;
  }
};

//! @brief What a stretch of rows and one of columns have in common: each has a sum of its squares.
//!
//! In a row lane k adds up columns k, k + 8, and so on, in ascending order; then the eight lanes are added, those four apart first. A
//! column adds up its rows in ascending order.
struct line_tile {
  std::uint64_t begin_row;
  std::uint64_t end_row;
  std::uint64_t begin_column;
  std::uint64_t end_column;
  std::uint64_t sums_of_rows;     //!< That of the first row; those of others are row_parts() apart.
  std::uint64_t sums_of_columns;  //!< That of the first column.

  static constexpr unsigned rows =
    64;  //!< At most, where a stretch has more columns than the next.
  static constexpr unsigned columns = 256;  //!< That are added at a time.

  [[nodiscard]] TERSUM_INLINE static constexpr line_tile of(line_piece const& piece,
                                                            std::uint64_t tile)
  {
    std::uint64_t const across = tile % piece.row_parts();
    std::uint64_t const down   = tile / piece.row_parts();
    line_tile own{};
    own.begin_row       = down * piece.column_stretch;
    own.end_row         = minimum(own.begin_row + piece.column_stretch, piece.rows());
    own.begin_column    = across * piece.row_stretch;
    own.end_column      = minimum(own.begin_column + piece.row_stretch, piece.columns);
    own.sums_of_rows    = piece.first_sum + 2 + own.begin_row * piece.row_parts() + across;
    own.sums_of_columns = piece.first_column_sum() + down * piece.columns + own.begin_column;
    return own;
  }
};

//! @brief Where the scales of a chunk of up to 1024 coordinates come from. Each is a product of an outer number, which is the same for
//! all coordinates of a row of the tensor, and an inner one, whose neighbours in memory are those of neighbours of the row.
//!
//! Outer numbers are rows and inner ones the shares of columns. Of a vector, whose coordinates are rows, the one outer number is the
//! share of its only column.
struct chunk_lines {
  std::uint64_t outer;  //!< The number of the first coordinate's row, or of the vector's share.
  std::uint64_t inner;  //!< The first coordinate's.
  std::uint64_t begin;  //!< That of a row's first coordinate.
  std::uint32_t
    shape;  //!< 11 bits: coordinates up to the end of the first row. 11 bits: of a row. Both count to 1024. Then: a vector.
  std::uint32_t inverse;  //!< Above 2^20 / columns, by at most one; 0 for 1024 columns and more.

  static constexpr std::uint32_t most = 1024;

  //! @name As it lies in memory
  //! @{
  [[nodiscard]] TERSUM_INLINE static chunk_lines of(word4 const& low, word4 const& high)
  {
    return {low.x | static_cast<std::uint64_t>(low.y) << 32,
            low.z | static_cast<std::uint64_t>(low.w) << 32,
            high.x | static_cast<std::uint64_t>(high.y) << 32,
            high.z,
            high.w};
  }
  [[nodiscard]] TERSUM_INLINE word4 low() const
  {
    return {half_of(outer, 0), half_of(outer, 32), half_of(inner, 0), half_of(inner, 32)};
  }
  [[nodiscard]] TERSUM_INLINE word4 high() const
  {
    return {half_of(begin, 0), half_of(begin, 32), shape, inverse};
  }
  //! @}

  //! The numbers of a coordinate.
  struct place {
    std::uint64_t outer;
    std::uint64_t inner;
  };

  //! @param first  Of the chunk, in the tensor.
  [[nodiscard]] TERSUM_INLINE static constexpr chunk_lines of(line_piece const& piece,
                                                              std::uint64_t first)
  {
    std::uint64_t const row = (piece.skip + first) / piece.columns;
    if (piece.columns == 1) {
      return {piece.first_share, piece.first_line + row, 0, most | most << 11 | 1u << 22, 0};
    }
    std::uint64_t const column = (piece.skip + first) % piece.columns;
    std::uint32_t const width  = clamp(piece.columns);
    return {piece.first_line + row,
            piece.first_share + column,
            piece.first_share,
            clamp(piece.columns - column) | width << 11,
            width == most ? 0 : (1u << 20) / width + 1};
  }

  [[nodiscard]] TERSUM_INLINE constexpr bool is_vector() const { return shape >> 22 != 0; }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint32_t first_row() const { return shape & 0x7ffu; }
  [[nodiscard]] TERSUM_INLINE constexpr std::uint32_t columns() const
  {
    return shape >> 11 & 0x7ffu;
  }
  //! Whether four coordinates from a multiple of four on have one outer number, and inner ones from a multiple of four on.
  [[nodiscard]] TERSUM_INLINE constexpr bool in_fours() const
  {
    return ((static_cast<std::uint32_t>(inner) | shape | shape >> 11) & 3u) == 0;
  }
  //! @param i  Of the chunk. The quotient is exact: i columns < 2^20 where columns < 1024.
  [[nodiscard]] TERSUM_INLINE constexpr place find(std::uint32_t i) const
  {
    if (i < first_row()) { return {outer, inner + i}; }
    std::uint32_t const beyond = i - first_row();
    std::uint32_t const rows   = beyond * inverse >> 20;
    return {outer + rows + 1, begin + (beyond - rows * columns())};
  }
  //! How many coordinates, or more than a chunk has, are left in the row of coordinate i.
  [[nodiscard]] TERSUM_INLINE constexpr std::uint32_t left_in_row(std::uint32_t i) const
  {
    if (i < first_row()) { return first_row() - i; }
    std::uint32_t const beyond = i - first_row();
    return columns() - (beyond - (beyond * inverse >> 20) * columns());
  }

 private:
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint32_t half_of(std::uint64_t number, int bit)
  {
    return static_cast<std::uint32_t>(number >> bit);
  }
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint32_t clamp(std::uint64_t count)
  {
    return count < most ? static_cast<std::uint32_t>(count) : most;
  }
};

}  // namespace tersum::inline v0::detail
