// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the codebook role, for every codebook of the library and of its users.

#pragma once

#include <tersum/concepts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace tersum::tests {

//! @brief Checks every law of the role.
//!
//! - Levels are positive and ascend; each lies in its cell, and the last cell has no end.
//! - `distortion` is the error of normal values that it claims, within a hundredth.
template <codebook Codebook>
void check_codebook_laws()
{
  constexpr int count = Codebook::magnitudes;
  static_assert(Codebook::bits >= 1 && Codebook::bits <= 8 && count == 1 << (Codebook::bits - 1));
  float const* const levels = Codebook::levels();
  float const* const ends   = Codebook::boundaries();
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(levels[i] > (i == 0 ? 0 : ends[i - 1]));
    CHECK(levels[i] < ends[i]);
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

}  // namespace tersum::tests
