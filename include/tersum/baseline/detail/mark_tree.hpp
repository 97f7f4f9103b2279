// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The marks of `group_absmax` in the order in which a binary search meets them, for searches in many lanes at once.

#pragma once

#include <tersum/baseline/detail/group_units.hpp>
#include <tersum/detail/bits.hpp>

#include <array>
#include <cstddef>

namespace tersum::inline v0::detail {

//! @brief The marks of a quantizer as such a search reads them, as floats, which hold them exactly.
template <class Quantizer>
struct mark_tree {
  static constexpr int count = Quantizer::magnitudes;

  //! Step d of the search compares with one of the 2^d marks from number 2^d on. The results of the steps before are the
  //! bits of its number.
  static constexpr std::array<float, extent(count)> nodes = [] {
    std::array<float, extent(count)> out{};
    for (std::size_t step = 1; step < count; step *= 2) {
      for (std::size_t i = 0; i < step; ++i) {
        out[step + i] = static_cast<float>(Quantizer::mark[(2 * i + 1) * count / (2 * step)]);
      }
    }
    return out;
  }();

  //! For each level but the last the least magnitude above it that is rounded up without dither. `round` counts those that a
  //! magnitude reaches.
  static constexpr std::array<std::uint32_t, extent(count)> ups = [] {
    std::array<std::uint32_t, extent(count)> out{};
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t const next = Quantizer::mark[i + 1];
      out[i]                   = minimum((Quantizer::mark[i] + next) / 2 + 1, next);
    }
    return out;
  }();

  //! Whether that is all of `round`: no magnitude is nearer to what follows the last level.
  static constexpr bool counts_ups = Quantizer::dither::rounds == 0 && ups[count - 1] > block_one;

  //! These in the order of `nodes`.
  static constexpr std::array<float, extent(count)> up_nodes = [] {
    std::array<float, extent(count)> out{};
    for (std::size_t step = 1; step < count; step *= 2) {
      for (std::size_t i = 0; i < step; ++i) {
        out[step + i] = static_cast<float>(ups[(2 * i + 1) * count / (2 * step) - 1]);
      }
    }
    return out;
  }();

  //! All marks but the last, ascending.
  static constexpr std::array<float, extent(count)> marks = [] {
    std::array<float, extent(count)> out{};
    for (std::size_t i = 0; i < count; ++i) { out[i] = static_cast<float>(Quantizer::mark[i]); }
    return out;
  }();

  //! The distance from each mark to the next.
  static constexpr std::array<float, extent(count)> gaps = [] {
    std::array<float, extent(count)> out{};
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(Quantizer::mark[i + 1] - Quantizer::mark[i]);
    }
    return out;
  }();
};

//! @brief For magnitudes between two powers of two a pair of lines, of which the lower one, rounded down, is how many of `ups`
//! a magnitude reaches, or one more: for levels of equal distances in each of several ranges.
template <class Quantizer>
struct up_lines {
  using tree = mark_tree<Quantizer>;

  static constexpr std::size_t count = extent(tree::count);
  static constexpr std::size_t pairs =
    32;  //!< Told apart by the low bits of the exponent of a float.
  //! @name Magnitudes beyond these are taken for them
  //! @{
  static constexpr float least = 0.5f;
  static constexpr float most  = static_cast<float>(tree::ups[count - 2]);
  //! @}
  //! In units of 1 / fraction a height is an integer, in the low bits of a float around `lift`.
  static constexpr int fraction_bits = 8;
  static constexpr float lift        = 49152.0f;

  //! @brief How many a magnitude reaches, with a fraction that is linear between them.
  static constexpr double height(double at) noexcept
  {
    // By halves: compilers count the steps of what they compute.
    std::size_t i = 0;
    for (std::size_t end = count - 2; i < end;) {
      std::size_t const middle = (i + end) / 2;
      if (tree::ups[middle] <= at) {
        i = middle + 1;
      } else {
        end = middle;
      }
    }
    double const low  = i == 0 ? 0.0 : tree::ups[i - 1];
    double const high = tree::ups[i];
    return static_cast<double>(i) + (high > low ? (at - low) / (high - low) : 0.0);
  }

  struct line {
    double slope, start;
    constexpr double operator()(double at) const noexcept { return start + slope * at; }
  };
  static constexpr line through(double a, double b) noexcept
  {
    double const slope = b > a ? (height(b) - height(a)) / (b - a) : 0.0;
    return {slope, height(a) - slope * a};
  }

  struct table_type {
    alignas(64) float slope[2][pairs];
    alignas(64) float start[2][pairs];
    double error;  //!< The largest distance between the lower line and `height`.
  };

  static constexpr table_type table = [] {
    table_type out{};
    for (std::uint32_t exponent = float_bits(least) >> 23; exponent <= float_bits(most) >> 23;
         ++exponent) {
      double const first = bits_float(exponent << 23);
      double const last  = minimum(2 * first, static_cast<double>(most));
      line const whole   = through(first, last);
      line best[2]       = {whole, whole};
      double error       = 1e9;
      // The lines meet where one of them is reached, or are one.
      for (std::size_t k = 0; k < count; ++k) {
        double const at = tree::ups[k];
        if (k > 0 && (at <= first || at >= last)) { continue; }
        line const lines[2] = {k > 0 ? through(first, at) : whole,
                               k > 0 ? through(at, last) : whole};
        double above = 0, below = 0;
        auto const meet = [&](double where, double number) {
          double const off = minimum(lines[0](where), lines[1](where)) - number;
          above            = maximum(above, off);
          below            = minimum(below, off);
        };
        meet(first, height(first));
        meet(last, height(last));
        for (std::size_t i = 0; i + 1 < count; ++i) {
          double const up = tree::ups[i];
          if (up >= first && up <= last) { meet(up, static_cast<double>(i + 1)); }
        }
        if ((above - below) / 2 < error) {
          error = (above - below) / 2;
          for (std::size_t i = 0; i < 2; ++i) {
            best[i] = {lines[i].slope, lines[i].start - (above + below) / 2};
          }
        }
      }
      for (std::size_t i = 0; i < 2; ++i) {
        out.slope[i][exponent % pairs] = static_cast<float>(best[i].slope);
        out.start[i][exponent % pairs] =
          static_cast<float>(best[i].start + 0.5 + static_cast<double>(lift));
      }
      out.error = maximum(out.error, error);
    }
    return out;
  }();

  //! Whether one comparison tells the number. What lines and sums are rounded by is far less than what is left.
  static constexpr bool serves = table.error < 0.45;

  //! The magnitude from which on there are so many: the first has no beginning.
  struct begins_type {
    alignas(64) float at[count];
  };
  static constexpr begins_type begins = [] {
    begins_type out{};
    for (std::size_t i = 1; i < count; ++i) { out.at[i] = static_cast<float>(tree::ups[i - 1]); }
    return out;
  }();
};

//! @brief Whether all marks but the first are powers of two, each twice the one before.
template <class Quantizer>
inline constexpr bool doubles_marks = [] {
  std::uint32_t const first = Quantizer::mark[1];
  bool all                  = (first & (first - 1)) == 0;
  for (std::size_t i = 1; i < Quantizer::magnitudes; ++i) {
    all = all && Quantizer::mark[i + 1] == 2 * Quantizer::mark[i];
  }
  return all;
}();

//! @brief Whether a quantizer's codes are found by `ups` alone.
template <class Quantizer>
inline constexpr bool counts_ups = [] {
  if constexpr (!Quantizer::uniform) { return mark_tree<Quantizer>::counts_ups; }
  return false;
}();

}  // namespace tersum::inline v0::detail
