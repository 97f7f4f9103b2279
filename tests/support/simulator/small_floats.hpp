// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! 16-bit floating point by arithmetic in double, which the library's own conversions do not use.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tersum::simulator {

//! @brief A number to a format of 16 bits: to nearest, ties to even. Every NaN becomes 0x7fff.
//! @tparam Mantissa  bits after the point
template <int Mantissa>
[[nodiscard]] inline std::uint16_t round_to_small(double a)
{
  constexpr int least      = Mantissa == 10 ? -14 : -126;  // exponent
  constexpr auto infinity  = static_cast<std::uint64_t>((1 << 15) - (1 << Mantissa));
  constexpr double rounder = 0x1p52;  // a sum with it has no place for a fraction
  if (a != a) { return 0x7fff; }
  auto const bits     = std::bit_cast<std::uint64_t>(a);
  auto const exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
  int const e         = exponent < least ? least : exponent;
  auto const sign     = static_cast<std::uint16_t>(bits >> 63 << 15);
  if (e > 127) { return static_cast<std::uint16_t>(sign | infinity); }
  auto const scale   = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + Mantissa - e) << 52);
  double const steps = (std::fabs(a) * scale + rounder) - rounder;
  std::uint64_t const all =
    (static_cast<std::uint64_t>(e - least) << Mantissa) + static_cast<std::uint64_t>(steps);
  return static_cast<std::uint16_t>(sign | (all < infinity ? all : infinity));
}

[[nodiscard]] inline std::uint16_t round_to_half(double a) { return round_to_small<10>(a); }
//! Of a float: a double of more bits than that would be rounded once all the same.
[[nodiscard]] inline std::uint16_t round_to_bfloat16(double a) { return round_to_small<7>(a); }

[[nodiscard]] inline double value_of_half(std::uint16_t bits)
{
  int const exponent = bits >> 10 & 31;
  double size        = bits & 1023;
  if (exponent == 31) {
    size = size != 0 ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    size *= 0x1p-24;
  } else {
    size =
      (size + 1024) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent - 25) << 52);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

[[nodiscard]] inline double value_of_bfloat16(std::uint16_t bits)
{
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace tersum::simulator
