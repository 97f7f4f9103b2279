// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One tensor whose rows and columns are sorted, as kernels see it.

#pragma once

#include <tersum/config.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief One tensor of a `sorted_codec`; part of the state. A *line* is a row or a column of a matrix.
//!
//! Sums over the records before it say where its own part of an array begins, or which blocks of a launch are its own.
struct line_record {
  std::uint64_t offset;       //!< First coordinate in the gradient.
  std::uint64_t rows;         //!< 1 if it is not sorted, but copied; in a metric 0 if it bypasses.
  std::uint64_t columns;      //!< Of what is copied all coordinates.
  std::uint64_t first_line;   //!< Its first row among all lines; its columns follow its rows.
  std::uint64_t first_tile;   //!< Tiles of the matrices before, of which a block finds the peaks.
  std::uint64_t first_group;  //!< Groups of lines before, which a block counts.
  std::uint64_t
    first_block;         //!< Blocks before that copy rows, or coordinates of what is not sorted.
  std::uint64_t sorted;  //!< 1: a matrix that is compressed.

  //! Threads side by side, a power of two: a thread works on one column of a tile.
  static constexpr std::uint64_t block_threads = 256;
  //! Rows of a tile for each thread.
  static constexpr std::uint64_t tile_depth = 32;
  //! Lines of a group.
  static constexpr std::uint64_t group_lines = 2048;
  //! Coordinates that a block copies; longer rows are a block of their own.
  static constexpr std::uint64_t block_coordinates = 8192;

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t lines() const noexcept
  {
    return sorted != 0 ? rows + columns : 0;
  }
  //! Columns of a tile, but for the last ones.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t tile_columns() const noexcept
  {
    std::uint64_t width = 1;
    while (width < columns && width < block_threads) { width *= 2; }
    return width;
  }
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t tile_rows() const noexcept
  {
    return tile_depth * (block_threads / tile_columns());
  }
  //! Tiles from left to right.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t tiles_across() const noexcept
  {
    return (columns + tile_columns() - 1) / tile_columns();
  }
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t tiles() const noexcept
  {
    return sorted != 0 ? tiles_across() * ((rows + tile_rows() - 1) / tile_rows()) : 0;
  }
  //! Groups of its rows, and of its columns: no group has both.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t groups(bool of_rows) const noexcept
  {
    if (sorted == 0) { return 0; }
    return ((of_rows ? rows : columns) + group_lines - 1) / group_lines;
  }
  //! Rows that a block copies.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t block_rows() const noexcept
  {
    return columns < block_coordinates ? block_coordinates / columns : 1;
  }
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t blocks() const noexcept
  {
    if (sorted == 0) { return (columns + block_coordinates - 1) / block_coordinates; }
    return (rows + block_rows() - 1) / block_rows();
  }
};
static_assert(sizeof(line_record) == 64);

}  // namespace tersum::inline v0
