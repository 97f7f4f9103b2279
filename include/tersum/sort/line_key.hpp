// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! By what rows and columns are sorted, and where their coordinates go.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief The bits of a magnitude: they ascend with it, and NaN is above infinity.
template <gradient_element Element>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t magnitude_bits(Element value) noexcept
{
  if constexpr (std::is_same_v<Element, float>) {
    return detail::float_bits(value) & 0x7fffffffu;
  } else {
    return value.bits & 0x7fffu;
  }
}

//! @brief The key of a row or column whose largest magnitude has these bits: two keys an octave, from 2^-80 to 2^47; 0 of a
//! line of zeros.
//!
//! Keys ascend with magnitudes, so that the largest of the ranks' keys is that of the largest of their magnitudes, in whatever order
//! a transport takes it.
template <gradient_element Element>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint8_t line_key(std::uint32_t peak) noexcept
{
  if (peak == 0) { return 0; }
  std::uint32_t bits = peak;
  if constexpr (!std::is_same_v<Element, float>) {
    bits = detail::float_bits(to_float(Element{static_cast<std::uint16_t>(peak)}));
  }
  constexpr std::uint32_t below   = 2 * (127 - 80);  // Half octaves of floats below 2^-80.
  std::uint32_t const half_octave = bits >> 22;
  if (half_octave < below) { return 1; }
  return static_cast<std::uint8_t>(detail::minimum(half_octave - below + 1, 255u));
}

//! @brief Where a coordinate of a sorted matrix lies: in strips of `Strip` columns, one after the other, each row by row. So
//! neighbours in memory are neighbours in both orders.
template <int Strip>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t sorted_place(
  std::uint64_t row, std::uint64_t column, std::uint64_t rows, std::uint64_t columns) noexcept
{
  constexpr std::uint64_t wide = Strip;
  std::uint64_t const first    = column / wide * wide;
  std::uint64_t const width    = detail::minimum(wide, columns - first);
  return first * rows + row * width + (column - first);
}

}  // namespace tersum::inline v0
