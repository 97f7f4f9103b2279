// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The ends of a codebook's cells in the order in which a binary search meets them, for searches in many lanes at once.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>

#include <array>
#include <cstddef>

namespace tersum::inline v0::detail {

//! @brief Whether vectors find codes by the ends of cells, and levels by codes.
template <class Quantizer>
inline constexpr bool by_ends = has_ends<Quantizer> && !table_codebook<Quantizer>;

//! @brief Step d of the search compares with one of the 2^d ends from number 2^d on. The results of the steps before are the
//! bits of its number.
template <class Quantizer>
inline constexpr std::array<float, extent(1 << Quantizer::bits)> end_tree = [] {
  constexpr std::size_t count = extent(1 << Quantizer::bits);
  std::array<float, count> out{};
  for (std::size_t step = 1; step < count; step *= 2) {
    for (std::size_t i = 0; i < step; ++i) {
      out[step + i] = Quantizer::ends()[(2 * i + 1) * count / (2 * step) - 1];
    }
  }
  return out;
}();

}  // namespace tersum::inline v0::detail
