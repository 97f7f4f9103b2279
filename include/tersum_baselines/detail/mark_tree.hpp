// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The marks of `group_absmax` in the order in which a binary search meets them, for searches in many lanes at once.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum_baselines/detail/group_units.hpp>

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

}  // namespace tersum::inline v0::detail
