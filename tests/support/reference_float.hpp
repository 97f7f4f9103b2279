// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small floating point from its definition: every value by ldexp, rounding by search among all values.

#pragma once

#include <tersum/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! @brief A float of 16 bits or fewer.
//! @tparam Infinity  The pattern of infinity; that above the largest number where there is none.
template <int ExponentBits,
          int Bits     = 16,
          int Infinity = ((1 << ExponentBits) - 1) << (Bits - 1 - ExponentBits)>
class reference_float {
  static constexpr int mantissa_bits = Bits - 1 - ExponentBits;
  static constexpr int bias          = (1 << (ExponentBits - 1)) - 1;
  static constexpr int last          = (1 << (Bits - 1)) - 1;  // of the patterns without a sign

 public:
  static constexpr std::uint16_t infinity = Infinity;

  reference_float()
  {
    // A magnitude rounds to infinity as if this were finite.
    for (std::uint16_t bits = 0; bits <= infinity; ++bits) {
      magnitudes_.push_back(magnitude(bits));
    }
  }

  [[nodiscard]] static bool is_nan(std::uint16_t bits)
  {
    return (bits & last) >= infinity + (infinity % (1 << mantissa_bits) == 0 ? 1 : 0);
  }

  //! The value of a pattern that is not NaN.
  [[nodiscard]] static double value(std::uint16_t bits)
  {
    auto const below = static_cast<std::uint16_t>(bits & last);
    double const size =
      below == infinity ? std::numeric_limits<double>::infinity() : magnitude(below);
    return bits > last ? -size : size;
  }

  //! The magnitude halfway between a finite non-negative pattern and the next one.
  [[nodiscard]] double midpoint(std::uint16_t bits) const
  {
    return (magnitudes_[bits] + magnitudes_[bits + std::size_t{1}]) / 2;
  }

  //! The pattern nearest to a value, ties to the even pattern; every NaN becomes 0x7fff, of 16 bits.
  [[nodiscard]] std::uint16_t round(double number) const
  {
    if (std::isnan(number)) { return last; }
    int const sign    = std::signbit(number) ? last + 1 : 0;
    double const size = std::fabs(number);
    if (size >= magnitudes_.back()) { return static_cast<std::uint16_t>(sign | infinity); }
    auto const above = std::upper_bound(magnitudes_.begin(), magnitudes_.end(), size);
    auto const low   = static_cast<int>(above - magnitudes_.begin()) - 1;
    double const tie = midpoint(static_cast<std::uint16_t>(low));
    bool const up    = size > tie || (size == tie && low % 2 != 0);
    return static_cast<std::uint16_t>(sign | (low + (up ? 1 : 0)));
  }

  //! The same, of what is too large the largest number.
  [[nodiscard]] std::uint16_t round_finite(double number) const
  {
    double const largest = magnitudes_[infinity - 1];
    return round(std::clamp(number, -largest, largest));
  }

  //! Of the patterns below infinity.
  [[nodiscard]] std::vector<double> magnitudes() const
  {
    return {magnitudes_.begin(), magnitudes_.end() - 1};
  }

 private:
  static double magnitude(int bits)
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
template <class T>
using reference_of =
  std::conditional_t<std::is_same_v<T, half>, reference_half, reference_bfloat16>;
using reference_e4m3 = reference_float<4, 8, 0x7f>;  // which has no infinity
using reference_e5m2 = reference_float<5, 8>;

}  // namespace tersum::tests
