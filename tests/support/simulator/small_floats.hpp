// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Floats of 8 and 16 bits by arithmetic in double, which the library's own conversions do not use.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tersum::simulator {

//! @brief Of a sign, `Exponent` and `Mantissa` bits.
//! @tparam Most      The pattern of what is too large: infinity, or the largest number.
//! @tparam Infinity  That from which on patterns are infinity and NaNs, or a NaN where there is none.
template <int Exponent, int Mantissa, std::uint64_t Most, std::uint32_t Infinity>
struct small_float {
  static constexpr int width = Exponent + Mantissa;
  static constexpr int least = 2 - (1 << (Exponent - 1));  // exponent

  //! The nearest number, ties to even. Every NaN becomes ones without a sign.
  [[nodiscard]] static std::uint16_t round(double a)
  {
    constexpr double rounder = 0x1p52;  // a sum with it has no place for a fraction
    if (a != a) { return (1 << width) - 1; }
    auto const bits     = std::bit_cast<std::uint64_t>(a);
    auto const exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
    int const e         = exponent < least ? least : exponent;
    std::uint64_t all   = Most;
    if (e <= 127) {
      double const steps = (std::fabs(a) * power(Mantissa - e) + rounder) - rounder;
      all = (static_cast<std::uint64_t>(e - least) << Mantissa) + static_cast<std::uint64_t>(steps);
    }
    return static_cast<std::uint16_t>(bits >> 63 << width | (all < Most ? all : Most));
  }

  [[nodiscard]] static double value(std::uint32_t bits)
  {
    std::uint32_t const one = 1u << Mantissa, magnitude = bits & ((1u << width) - 1);
    int const exponent = magnitude < one ? 1 : static_cast<int>(magnitude >> Mantissa);
    double size        = magnitude % one + (magnitude < one ? 0 : one);
    size *= power(exponent + least - 1 - Mantissa);
    if (magnitude >= Infinity) {
      bool const infinite = magnitude == Infinity && Infinity % one == 0;
      size                = infinite ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
    }
    return (bits >> width & 1) != 0 ? -size : size;
  }

 private:
  static double power(int exponent)
  {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
  }
};

using half        = small_float<5, 10, 0x7c00, 0x7c00>;
using finite_half = small_float<5, 10, 0x7bff, 0x7c00>;
using e4m3        = small_float<4, 3, 0x7e, 0x7f>;
using e5m2        = small_float<5, 2, 0x7b, 0x7c>;
//! Of a float: a double of more bits would be rounded once all the same.
using bfloat16 = small_float<8, 7, 0x7f80, 0x7f80>;

}  // namespace tersum::simulator
