// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rounding to nearest: the laws of the role for every width, ties to even, the least error.

#include "conformance/quantizer_conformance.hpp"
#include "support/mismatches.hpp"

#include <tersum/quantize/nearest_quantizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace {

using tersum::nearest_quantizer;
using tersum::tests::mismatches;

TEST_CASE_TEMPLATE("[nearest_quantizer] obeys the laws of a quantizer",
                   Quantizer,
                   nearest_quantizer<2>,
                   nearest_quantizer<3>,
                   nearest_quantizer<4>,
                   nearest_quantizer<5>,
                   nearest_quantizer<6>,
                   nearest_quantizer<7>,
                   nearest_quantizer<8>)
{
  tersum::tests::check_quantizer_laws<Quantizer>();
}

TEST_CASE_TEMPLATE("[nearest_quantizer] a code is the nearest one, the even one of two",
                   Quantizer,
                   nearest_quantizer<2>,
                   nearest_quantizer<3>,
                   nearest_quantizer<4>,
                   nearest_quantizer<5>,
                   nearest_quantizer<6>,
                   nearest_quantizer<7>,
                   nearest_quantizer<8>)
{
  Quantizer const quantizer;
  int const limit = Quantizer::max_level;
  // By search among all codes, even ones first.
  auto const search = [&](double position) {
    int best = 0;
    for (int const parity : {0, 1}) {
      for (int code = -limit; code <= limit; ++code) {
        if ((code % 2 != 0) != (parity == 1)) { continue; }
        if (std::fabs(position - code) < std::fabs(position - best)) { best = code; }
      }
    }
    return best;
  };
  mismatches wrong;
  for (int quarters = -4 * limit - 1; quarters <= 4 * limit + 1; ++quarters) {
    float const position = static_cast<float>(quarters) / 4;
    wrong.expect(
      quantizer.encode(position, 1.0f, 0), search(static_cast<double>(position)), position);
    wrong.expect(quantizer.encode(position * 3, 1.0f / 4, 0), search(position * 0.75), position);
  }
  std::mt19937 random(43);
  for (int i = 0; i < 2000; ++i) {
    auto const value = static_cast<float>((static_cast<double>(random()) / 0x1p31 - 1) * limit);
    auto const scale = static_cast<float>(static_cast<double>(random()) / 0x1p31);
    double const exact =
      std::clamp<double>(static_cast<double>(value) * static_cast<double>(scale), -limit, limit);
    wrong.expect(quantizer.encode(value, scale, 0), search(exact), value, scale);
  }
  CHECK(wrong.report() == "");
}

}  // namespace
