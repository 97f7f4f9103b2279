// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What works on the rows and columns of a gradient's matrices is given.

#pragma once

#include <tersum/config.hpp>
#include <tersum/sort/line_record.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! How many of each there are, of all tensors.
struct line_totals {
  std::uint64_t tensors;
  std::uint64_t lines;
  std::uint64_t tiles;
  std::uint64_t groups;
  std::uint64_t blocks;
};

//! Values of a key, in descending order.
inline constexpr unsigned key_values = 256;

//! @brief Arrays in the executor's memory.
template <class Element>
struct line_args {
  line_totals totals;
  line_record const* records;
  Element* gradient;
  std::uint32_t*
    lines;  //!< Bits of the largest magnitude of each line; then, from the first place on, whose row or column it is.
  std::uint8_t* keys;     //!< Of each line.
  std::uint32_t* counts;  //!< `key_values` for each group.
  float* sorted;          //!< The gradient with sorted matrices.
};

//! @brief The record of a block: the last one whose `First` is not above the block's number.
template <std::uint64_t line_record::*First>
[[nodiscard]] TERSUM_INLINE line_record const& record_of(line_record const* records,
                                                         std::uint64_t count,
                                                         std::uint64_t block)
{
  std::uint64_t low = 0, high = count;
  while (high - low > 1) {
    std::uint64_t const middle = low + (high - low) / 2;
    if (records[middle].*First <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return records[low];
}

//! A group of lines: of rows or of columns of one matrix.
struct line_group {
  std::uint64_t first;  //!< Its first line among all.
  std::uint32_t begin;  //!< And among the rows, or the columns.
  std::uint32_t count;

  [[nodiscard]] TERSUM_INLINE static line_group of(line_record const& record, std::uint64_t group)
  {
    std::uint64_t const number  = group - record.first_group;
    bool const of_rows          = number < record.groups(true);
    std::uint64_t const all     = of_rows ? record.rows : record.columns;
    std::uint64_t const before  = of_rows ? number : number - record.groups(true);
    std::uint64_t const begin   = before * line_record::group_lines;
    std::uint64_t const left    = all - begin;
    std::uint64_t const at_most = line_record::group_lines;
    return {record.first_line + (of_rows ? 0 : record.rows) + begin,
            static_cast<std::uint32_t>(begin),
            static_cast<std::uint32_t>(left < at_most ? left : at_most)};
  }
};

}  // namespace tersum::inline v0::detail
