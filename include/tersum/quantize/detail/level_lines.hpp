// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The levels of codes of more than 8 bits. Part of the wire format.

#pragma once

#include <tersum/config.hpp>
#include <tersum/description.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0::detail {

//! @brief Levels for normal values on three lines: number n lies at x = n `step` and is the largest of x, 2 x - 1.71875 and
//! 8 x - 16.15625 root mean squares. It takes no table.
//!
//! The best levels of many bits are exp(x^2 / 6) as far apart at x root mean squares as at zero, and lose 2.72 / 4^Bits (Panter and
//! Dite, Quantization distortion in pulse-count modulation with nonuniform spacing of levels, 1951). Here the distances are `step` up
//! to 1.72, twice that up to 3.09 and eight times that up to 5.84, and the loss is 3.47 / 4^Bits. Levels at equal distances up
//! to 5.84 would lose 11.4 / 4^Bits.
//!
//! A number is what lies above 1.5 2^23 in the bits of a float, a *place*. All that a level is made of is exact.
template <int Bits>
struct level_lines {
  static constexpr int count                 = 1 << (Bits - 1);  //!< Levels of one sign.
  static constexpr float step                = 2.75f / count;
  static constexpr float inverse             = count / 2.75f;
  static constexpr float lift                = 12582912.0f;  //!< 1.5 2^23.
  static constexpr std::uint32_t first_place = 0x4b400000u;
  static constexpr std::uint32_t last_place  = first_place + count - 1;
  constexpr description describe() const { return {"level_lines", step, below_2, below_8}; }

  //! @name Where the second and the third line begin: their level at x = 0, below zero, and the number at which it would be zero
  //! @{
  static constexpr float below_2 = 1.71875f;
  static constexpr float below_8 = 16.15625f;
  static constexpr int start_2   = count / 16 * 5;
  static constexpr int start_8   = count / 64 * 47;
  //! @}

  //! @brief The number of a magnitude's level, the nearest on its line.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static words_of<Value> cell_of(Value const& magnitude)
  {
    auto const one   = from_bits(rounded_bits<0>(magnitude, inverse));
    auto const two   = from_bits(rounded_bits<start_2>(magnitude, inverse / 2));
    auto const eight = from_bits(rounded_bits<start_8>(magnitude, inverse / 8));
    return to_bits(
             smaller_size(smaller_size(one, two), smaller_size(eight, bits_float(last_place)))) -
           first_place;
  }

  //! @brief The level of a number.
  TERSUM_OF_VALUES
  template <class Words>
  [[nodiscard]] TERSUM_INLINE static auto level_of(Words const& cell)
  {
    auto const x     = (from_bits(cell + first_place) - lift) * step;
    auto const two   = x * 2.0f - below_2;
    auto const eight = x * 8.0f - below_8;
    return larger_size(larger_size(x, two), eight);
  }

  //! @brief The mean squared error of normal values over their mean square: between levels, and beyond the last one.
  [[nodiscard]] static constexpr float distortion() noexcept
  {
    constexpr auto levels = static_cast<float>(count);
    return .8665f / (levels * levels) + 2.64e-10f;
  }
};

}  // namespace tersum::inline v0::detail
