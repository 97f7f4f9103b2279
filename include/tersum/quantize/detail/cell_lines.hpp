// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How vectors find one of many cells: a line tells two of them, and one comparison which. For codebooks with so many levels that
//! tables of a grid would not fit the registers.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! @brief A table of floats as vectors look it up: the lower halves of all entries, then the upper ones.
template <std::size_t Count>
struct split_table {
  alignas(64) std::uint16_t low[Count];
  alignas(64) std::uint16_t high[Count];

  constexpr void set(std::size_t i, float value) noexcept
  {
    low[i]  = static_cast<std::uint16_t>(float_bits(value) & 0xffffu);
    high[i] = static_cast<std::uint16_t>(float_bits(value) >> 16);
  }
};

//! @brief For stretches of equal length a line whose height, rounded down, is the number of a value's cell or one more.
//!
//! Cells are those of magnitudes.
template <class Quantizer>
struct cell_lines {
  static constexpr std::size_t count     = extent(1 << (Quantizer::bits - 1));
  static constexpr std::size_t stretches = 32;
  //! In units of 1 / fraction a height is an integer, in the low bits of a float around `lift`.
  static constexpr int fraction_bits = 8;
  static constexpr float lift        = 49152.0f;

  //! Where cell i ends.
  static constexpr float end(std::size_t i) noexcept { return Quantizer::boundaries()[i]; }

  //! Values beyond it are taken for it: they lie in the same cell or in that beside it.
  static constexpr float most = end(count - 2);

  //! Stretch s has its middle at s / per_unit.
  static constexpr float per_unit = (static_cast<float>(stretches) - 0.75f) / most;

  static constexpr bool suits = most > 0.0f && most < std::numeric_limits<float>::max();

  //! @brief The number of a cell with its fraction, which is linear between ends.
  static constexpr double height(double at) noexcept
  {
    // Cells without an end or a beginning go on as their neighbours; magnitudes begin at zero.
    std::size_t cell = 0;
    while (cell < count - 2 && static_cast<double>(end(cell)) <= at) { ++cell; }
    std::size_t const from = cell > 0 ? cell - 1 : 0;
    bool const at_zero     = cell == 0;
    double const low       = at_zero ? 0.0 : static_cast<double>(end(from));
    double const high      = static_cast<double>(end(at_zero ? 0 : from + 1));
    double const number    = at_zero ? 0.0 : static_cast<double>(from + 1);
    return number + (high > low ? (at - low) / (high - low) : 0.0);
  }

  static constexpr double within(double at) noexcept
  {
    return minimum(maximum(at, 0.0), static_cast<double>(most));
  }

  struct lines {
    alignas(64) float slope[stretches];
    alignas(64) float start[stretches];
    double error;  //!< The largest distance between a line and `height`.
  };

  static constexpr lines table = [] {
    lines out{};
    if (!suits) { return out; }
    for (std::size_t s = 0; s < stretches; ++s) {
      double const middle = static_cast<double>(s);
      double const left   = within((middle - 0.5) / static_cast<double>(per_unit));
      double const right  = within((middle + 0.5) / static_cast<double>(per_unit));
      double const low    = height(left);
      double const slope  = right > left ? (height(right) - low) / (right - left) : 0.0;
      double above = 0, below = 0;
      for (std::size_t i = 0; i + 1 < count; ++i) {
        auto const at = static_cast<double>(end(i));
        if (at < left || at > right) { continue; }
        double const off = static_cast<double>(i + 1) - low - slope * (at - left);
        above            = maximum(above, off);
        below            = minimum(below, off);
      }
      out.slope[s] = static_cast<float>(slope);
      out.start[s] = static_cast<float>(low + (above + below) / 2 - slope * left + 0.5 +
                                        static_cast<double>(lift));
      out.error    = maximum(out.error, (above - below) / 2);
    }
    return out;
  }();

  //! Whether a cell is told by its line and one comparison. What lines, their sums and beginnings of stretches are rounded by is
  //! far less than what is left.
  static constexpr bool serves = suits && table.error < 0.45;

  //! Where the cells begin: the first one has no beginning.
  static constexpr split_table<count> begins = [] {
    split_table<count> out{};
    out.set(0, -std::numeric_limits<float>::infinity());
    for (std::size_t i = 1; i < count; ++i) { out.set(i, end(i - 1)); }
    return out;
  }();
  static constexpr split_table<count> levels = [] {
    split_table<count> out{};
    for (std::size_t i = 0; i < count; ++i) { out.set(i, Quantizer::levels()[i]); }
    return out;
  }();
};

}  // namespace tersum::inline v0::detail
