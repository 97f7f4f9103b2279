// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Random rounding: the laws of the role for every width, and what several ranks gain from
//! stratified dither.

#include "conformance/quantizer_conformance.hpp"
#include "support/mismatches.hpp"

#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace {

using tersum::dither_byte;
using tersum::dither_key;
using tersum::independent;
using tersum::stochastic_quantizer;
using tersum::stratified;
using tersum::tests::mismatches;

TEST_CASE_TEMPLATE("[stochastic_quantizer] obeys the laws of a quantizer",
                   Quantizer,
                   stochastic_quantizer<2>,
                   stochastic_quantizer<3>,
                   stochastic_quantizer<4>,
                   stochastic_quantizer<5>,
                   stochastic_quantizer<6>,
                   stochastic_quantizer<7>,
                   stochastic_quantizer<8>,
                   stochastic_quantizer<4, independent>)
{
  tersum::tests::check_quantizer_laws<Quantizer>();
}

template <int Bits>
void compare_codes(mismatches& wrong)
{
  stochastic_quantizer<Bits> const quantizer;
  double const limit = std::exp2(Bits - 1) - 1;
  std::mt19937 random(37 + Bits);
  for (int i = 0; i < 4000; ++i) {
    auto const value = static_cast<float>(static_cast<double>(random()) / 0x1p28 - 8);
    auto const scale =
      static_cast<float>(256 / (0.01 + static_cast<double>(random()) / 0x1p32 * 2));
    double const grid = std::nearbyint(static_cast<double>(value) * static_cast<double>(scale));
    for (std::uint32_t draw = 0; draw < 256; ++draw) {
      double const code = std::clamp(std::floor((grid + draw) / 256), -limit, limit);
      wrong.expect(quantizer.encode(value, scale, draw),
                   static_cast<std::int32_t>(code),
                   Bits,
                   value,
                   scale,
                   draw);
    }
  }
}

TEST_CASE("[stochastic_quantizer] the code is floor((rne(256 t) + u) / 256), at most the limit")
{
  mismatches wrong;
  compare_codes<2>(wrong);
  compare_codes<3>(wrong);
  compare_codes<4>(wrong);
  compare_codes<5>(wrong);
  compare_codes<6>(wrong);
  compare_codes<7>(wrong);
  compare_codes<8>(wrong);
  CHECK(wrong.report() == "");
}

TEST_CASE("[stochastic_quantizer] one value, encoded and decoded")
{
  // [encode-one]
  tersum::stochastic_quantizer<4> const quantizer;
  float const step             = 0.25f;
  tersum::dither_key const key = {.seed = 42, .step = 0, .rank = 3};
  std::uint32_t const random   = tersum::dither_byte<tersum::stratified>(1000, key);

  std::int32_t const code = quantizer.encode(0.6f, 256 / step, random);
  float const decoded     = static_cast<float>(code) * step;  // 0.5 or 0.75, on average 0.6
  // [encode-one]

  CHECK((code == 2 || code == 3));
  CHECK(std::fabs(decoded - 0.6f) < step);
}

TEST_CASE_TEMPLATE("[stochastic_quantizer] the mean over many steps is the value",
                   Dither,
                   independent,
                   stratified)
{
  // Codes of one coordinate over n steps: the byte of each step is uniform, so the mean of the
  // codes is rne(256 t) / 256 and a code lies in a range of one. By Hoeffding their mean is off by
  // t = sqrt(8.5 / n) with probability at most 2 exp(-2 n t^2) = 2 exp(-17) = 8.3e-8.
  stochastic_quantizer<4, Dither> const quantizer;
  int const steps   = 1 << 16;
  double const band = std::sqrt(8.5 / steps);
  for (float const value :
       {-7.0f, -6.3f, -0.5f, -0.001f, 0.0f, 0.002f, 0.25f, 1.999f, 3.14159f, 6.996f}) {
    for (std::uint32_t const rank : {0u, 5u}) {
      CAPTURE(value);
      CAPTURE(rank);
      double sum = 0;
      for (std::uint64_t step = 0; step < steps; ++step) {
        sum += quantizer.encode(
          value, 256.0f, dither_byte<Dither>(0, {.seed = 9, .step = step, .rank = rank}));
      }
      double const finer = std::nearbyint(static_cast<double>(value) * 256) / 256;
      CHECK(std::fabs(sum / steps - finer) <= band);
    }
  }
}

TEST_CASE(
  "[stochastic_quantizer] stratified ranks err by less than a step in the sum of equal values")
{
  // Independent ones err by sqrt(n f (1 - f)) steps on average.
  stochastic_quantizer<8> const quantizer;
  mismatches wrong;
  std::mt19937 random(41);
  for (std::uint32_t ranks = 2; ranks <= 256; ranks *= 2) {
    for (std::uint64_t position = 0; position < 200; ++position) {
      auto const value   = static_cast<float>(static_cast<double>(random()) / 0x1p32 * 200 - 100);
      std::int32_t total = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        dither_key const key{.seed = 1, .step = 0, .rank = rank};
        total += quantizer.encode(value, 256.0f, dither_byte<stratified>(position, key));
      }
      double const exact = ranks * (std::nearbyint(static_cast<double>(value) * 256) / 256);
      wrong.expect(std::fabs(total - exact) < 1, true, ranks, position, value);
      if (ranks == 256) { wrong.expect(static_cast<double>(total), exact, ranks, position, value); }
    }
  }
  CHECK(wrong.report() == "");
}

}  // namespace
