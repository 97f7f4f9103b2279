// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! 16-bit floating point from its definition: every value by ldexp, rounding by search among all values.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tersum::tests {

//! @brief A binary interchange format of 16 bits.
//! @tparam ExponentBits  5 for binary16, 8 for bfloat16.
template <int ExponentBits>
class reference_float {
  static constexpr int mantissa_bits = 15 - ExponentBits;
  static constexpr int bias          = (1 << (ExponentBits - 1)) - 1;

 public:
  static constexpr std::uint16_t infinity = ((1 << ExponentBits) - 1) << mantissa_bits;

  reference_float()
  {
    for (std::uint16_t bits = 0; bits < infinity; ++bits) {
      magnitudes_.push_back(magnitude(bits));
    }
    // What the next exponent would hold: a magnitude rounds to infinity as if this were finite.
    magnitudes_.push_back(std::ldexp(1.0, bias + 1));
  }

  [[nodiscard]] static bool is_nan(std::uint16_t bits) { return (bits & 0x7fff) > infinity; }

  //! The value of a pattern that is not NaN.
  [[nodiscard]] static double value(std::uint16_t bits)
  {
    auto const below = static_cast<std::uint16_t>(bits & 0x7fff);
    double const size =
      below == infinity ? std::numeric_limits<double>::infinity() : magnitude(below);
    return bits & 0x8000 ? -size : size;
  }

  //! The magnitude halfway between a finite non-negative pattern and the next one.
  [[nodiscard]] double midpoint(std::uint16_t bits) const
  {
    return (magnitudes_[bits] + magnitudes_[bits + std::size_t{1}]) / 2;
  }

  //! The pattern nearest to a value, ties to the even pattern; every NaN becomes 0x7fff.
  [[nodiscard]] std::uint16_t round(double number) const
  {
    if (std::isnan(number)) { return 0x7fff; }
    int const sign    = std::signbit(number) ? 0x8000 : 0;
    double const size = std::fabs(number);
    if (size >= magnitudes_.back()) { return static_cast<std::uint16_t>(sign | infinity); }
    auto const above = std::upper_bound(magnitudes_.begin(), magnitudes_.end(), size);
    auto const low   = static_cast<int>(above - magnitudes_.begin()) - 1;
    double const tie = midpoint(static_cast<std::uint16_t>(low));
    bool const up    = size > tie || (size == tie && low % 2 != 0);
    return static_cast<std::uint16_t>(sign | (low + (up ? 1 : 0)));
  }

 private:
  static double magnitude(std::uint16_t bits)
  {
    int const exponent = bits >> mantissa_bits;
    int const mantissa = bits & ((1 << mantissa_bits) - 1);
    int const whole    = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
  }

  std::vector<double> magnitudes_;  // of the patterns 0 to infinity
};

using reference_half     = reference_float<5>;
using reference_bfloat16 = reference_float<8>;

}  // namespace tersum::tests
