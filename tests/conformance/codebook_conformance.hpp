// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the codebook role, for every codebook of the library and of its users.

#pragma once

#include <tersum/concepts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tersum::tests {

//! The laws of tables.
template <table_codebook Codebook>
void check_codebook_tables()
{
  constexpr int count = Codebook::magnitudes;
  static_assert(count == 1 << (Codebook::bits - 1));
  float const* const levels = Codebook::levels();
  float const* const ends   = Codebook::boundaries();
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(levels[i] > (i == 0 ? 0 : ends[i - 1]));
    CHECK(levels[i] < ends[i]);
    if constexpr (has_levels_of<Codebook>) {
      auto const code  = static_cast<std::uint32_t>(i);
      float const next = i + 1 < count ? std::nextafter(ends[i], 0.0f) : 1e30f;
      CHECK(Codebook{}.decode(code) == levels[i]);
      CHECK(Codebook{}.decode(code + count) == -levels[i]);
      CHECK(Codebook{}.encode(next) == code);
      CHECK(Codebook{}.encode(-next) == code + count);
    }
  }
  CHECK(ends[count - 1] == std::numeric_limits<float>::infinity());

  // Of normal x with levels q(x): the estimate |x|^2 / <x, q> q of x is off by |x|^2 |q|^2 / <x, q>^2 - 1 of |x|^2.
  double product = 0, square = 0;
  constexpr double step = 1e-4;
  int cell              = 0;
  for (double x = step / 2; x < 12; x += step) {
    while (x >= static_cast<double>(ends[cell])) { ++cell; }
    double const share = 2 * step * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979);
    double const level = static_cast<double>(levels[cell]);
    product += share * x * level;
    square += share * level * level;
  }
  double const error = square / (product * product) - 1;
  CHECK(std::abs(static_cast<double>(Codebook::distortion()) / error - 1) < .01);
}

//! @brief Checks every law of the role.
//!
//! - The level of a code has that code. Codes have no more than `bits` bits.
//! - Of the tables, if there are any: levels are positive and ascend; each lies in its cell, and the last cell has no end. The
//!   plain form, if there is one, makes the same of values and of codes.
//! - Of `ends`, if there are any: they ascend, `encode` counts those that a value is not below, and `decode` returns `levels`.
//! - `distortion`, if there is one, is the error of normal values that it claims, within a hundredth.
template <codebook Codebook>
void check_codebook_laws()
{
  static_assert(Codebook::bits >= 1 && Codebook::bits <= 8);
  constexpr Codebook book{};
  constexpr std::uint32_t codes = 1u << Codebook::bits;
  if constexpr (has_levels_of<Codebook>) {
    for (std::uint32_t code = 0; code < codes; ++code) {
      CAPTURE(code);
      CHECK(book.encode(book.decode(code)) == code);
    }
    for (int i = -800; i <= 800; ++i) { CHECK(book.encode(static_cast<float>(i) / 160) < codes); }
  }
  if constexpr (table_codebook<Codebook>) { check_codebook_tables<Codebook>(); }
}

}  // namespace tersum::tests
