// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How the cell of a value is found in two steps, for codebooks of many levels.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0::detail {

//! @brief A grid of `points` per root mean square, and for each point the number of the cell that it lies in, as the bits of a float.
//!
//! Between neighbouring points lies one boundary at most. So a value's cell is found by two tables and one comparison,
//! which is cheaper than many comparisons.
//! @tparam Reach  Root mean squares that it covers, a power of two: beyond it there are no boundaries.
template <class Quantizer, int Reach = 8>
struct cell_grid {
  static constexpr int points = Quantizer::magnitudes / 2;
  static constexpr int count  = Reach * points;

  static constexpr std::array<float, extent(count)> cells = [] {
    std::array<float, extent(count)> numbers{};
    std::uint32_t cell = 0;
    for (int i = 0; i < count; ++i) {
      while (Quantizer::boundaries()[cell] * points <= static_cast<float>(i)) { ++cell; }
      numbers[static_cast<std::size_t>(i)] = bits_float(cell);
    }
    return numbers;
  }();

  //! Whether no two boundaries lie between neighbouring points.
  static constexpr bool serves = [] {
    for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
      if (float_bits(cells[i + 1]) > float_bits(cells[i]) + 1) { return false; }
    }
    return float_bits(cells.back()) == static_cast<std::uint32_t>(Quantizer::magnitudes - 1);
  }();

  //! The number of the cell of a magnitude, in root mean squares.
  template <class Value>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr words_of<Value> cell_of(Value const& magnitude)
  {
    static_assert(serves, "tersum: the cells of a codebook must be wider than a point of its grid");
    constexpr auto last = static_cast<float>(count - 1);
    auto const below    = magnitude * static_cast<float>(points);
    auto const point    = to_words(truncate(smaller(below, last)));
    auto const cell     = to_bits(look_up<count>(cells.data(), point));
    return cell +
           one_if(magnitude >= look_up<Quantizer::magnitudes>(Quantizer::boundaries(), cell));
  }
};

}  // namespace tersum::inline v0::detail
