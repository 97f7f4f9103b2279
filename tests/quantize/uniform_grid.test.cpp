// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The rounding of all uniform quantizers against its formula in exact arithmetic, and the laws of those that round so.

#include "conformance/quantizer_conformance.hpp"
#include "support/mismatches.hpp"

#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <utility>

namespace {

using tersum::round_to_grid;
using tersum::tests::mismatches;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan      = std::numeric_limits<float>::quiet_NaN();

// floor((rne(value scale) + random) / 2^FractionBits), clamped. Products are exact in double; nearbyint rounds to nearest even.
template <int Limit, int FractionBits>
std::int32_t reference(float value, float scale, std::uint32_t random)
{
  double const product = static_cast<double>(value) * static_cast<double>(scale);
  double const code    = std::floor(std::ldexp(std::nearbyint(product) + random, -FractionBits));
  return static_cast<std::int32_t>(std::clamp<double>(code, -Limit, Limit));
}

template <int Limit, int FractionBits>
void compare(mismatches& wrong, float value, float scale)
{
  for (std::uint32_t random = 0; random < (1u << FractionBits); ++random) {
    std::int32_t const got = round_to_grid<Limit, FractionBits>(value, scale, random);
    wrong.expect(
      got, reference<Limit, FractionBits>(value, scale, random), Limit, value, scale, random);
  }
}

// Calls with the limits of q = 2 .. 8 bits.
template <class Function>
void for_each_limit(Function const& function)
{
  [&]<int... I>(std::integer_sequence<int, I...>)
  {
    (function(std::integral_constant<int, (2 << I) - 1>{}), ...);
  }
  (std::make_integer_sequence<int, 7>{});
}

TEST_CASE("[uniform_grid] every point, every tie and every random number of every grid")
{
  // All half units from beyond one end to beyond the other. The reference of a point is computed once.
  for_each_limit([]<int Limit>(std::integral_constant<int, Limit>) {
    mismatches codes, sums;
    int const end = 2 * 256 * Limit + 600;
    for (int twice = -end; twice <= end; ++twice) {
      float const value = static_cast<float>(twice) / 512;
      int const floor   = twice >= 0 ? twice / 2 : -((1 - twice) / 2);
      int const rounded =
        twice % 2 == 0 ? twice / 2 : floor + (floor % 2 != 0);  // a tie goes to the even one
      std::int32_t total = 0;
      bool all           = true;
      for (std::int32_t random = 0; random < 256; ++random) {
        std::int32_t const got =
          round_to_grid<Limit, 8>(value, 256.0f, static_cast<std::uint32_t>(random));
        std::int32_t const want =
          std::clamp((rounded + random + 256 * 1024) / 256 - 1024, -Limit, Limit);
        all = all && got == want;
        total += got;
      }
      codes.expect(all, true, Limit, value);
      // Hermite: floor((r + u) / 256) over u = 0 .. 255 sums to r. So the mean is exact.
      sums.expect(total, std::clamp(rounded, -256 * Limit, 256 * Limit), Limit, value);
    }
    CHECK(codes.report() == "");
    CHECK(sums.report() == "");
  });
}

TEST_CASE("[uniform_grid] any value with any scale equals the formula in exact arithmetic")
{
  mismatches stochastic, nearest;
  std::mt19937 random(29);
  auto const uniform = [&] { return static_cast<double>(random()) / 0x1p32; };
  for_each_limit([&]<int Limit>(std::integral_constant<int, Limit>) {
    for (int i = 0; i < 3000; ++i) {
      // A product between -1.2 and 1.2 times the grid, its factors spread over the exponents.
      int const exponent = static_cast<int>(uniform() * 120) - 60;
      auto const scale   = static_cast<float>(std::ldexp(1 + uniform(), exponent));
      auto const value   = static_cast<float>((uniform() * 2.4 - 1.2) * Limit / scale);
      compare<Limit, 8>(stochastic, value * 256, scale);
      compare<Limit, 0>(nearest, value, scale);
    }
  });
  CHECK(stochastic.report() == "");
  CHECK(nearest.report() == "");
}

TEST_CASE("[uniform_grid] the product is rounded once")
{
  // 127.5 (1 - 2^-26) is no float: rounded first it would be the tie 127.5 and then 128.
  float const value = 1 + 0x1p-13f, scale = 127.5f * (1 - 0x1p-13f);
  REQUIRE(static_cast<double>(scale) == 127.5 * (1 - 0x1p-13));
  CHECK(value * scale == 127.5f);
  CHECK(round_to_grid<255, 0>(value, scale, 0) == 127);
  CHECK(round_to_grid<255, 0>(-value, scale, 0) == -127);
}

TEST_CASE("[uniform_grid] what is not on the grid takes an end, and NaN either")
{
  for_each_limit([]<int Limit>(std::integral_constant<int, Limit>) {
    CAPTURE(Limit);
    // Around the ends of the exact range of the addition, and far beyond.
    for (float const size : {256.0f * Limit,
                             256.0f * (Limit + 1),
                             4194303.0f,
                             4194304.0f,
                             8388608.0f,
                             12582912.0f,
                             16777216.0f,
                             4294967296.0f,
                             1e30f,
                             std::numeric_limits<float>::max(),
                             infinity}) {
      CAPTURE(size);
      for (std::uint32_t const random : {0u, 1u, 128u, 255u}) {
        CAPTURE(random);
        CHECK(round_to_grid<Limit, 8>(size, 1.0f, random) == Limit);
        CHECK(round_to_grid<Limit, 8>(-size, 1.0f, random) == -Limit);
        CHECK(round_to_grid<Limit, 8>(1.0f, size, random) == Limit);
        CHECK(round_to_grid<Limit, 8>(size, 1e8f, random) == Limit);
        CHECK(round_to_grid<Limit, 8>(-size, 1e8f, random) == -Limit);
        CHECK(round_to_grid<Limit, 0>(size, 1.0f, 0) == Limit);
        CHECK(round_to_grid<Limit, 0>(-size, 1.0f, 0) == -Limit);
      }
    }
    for (std::uint32_t const random : {0u, 255u}) {
      for (float const not_a_number : {nan, -nan, std::bit_cast<float>(0x7f800001u)}) {
        CHECK(std::abs(round_to_grid<Limit, 8>(not_a_number, 1.0f, random)) == Limit);
        CHECK(std::abs(round_to_grid<Limit, 8>(1.0f, not_a_number, random)) == Limit);
        CHECK(std::abs(round_to_grid<Limit, 8>(not_a_number, 0.0f, random)) == Limit);
      }
      CHECK(std::abs(round_to_grid<Limit, 8>(infinity, 0.0f, random)) ==
            Limit);  // the product is NaN
    }
  });
}

TEST_CASE_TEMPLATE("[uniform_grid] quantizers that round so obey the laws of a quantizer",
                   Quantizer,
                   tersum::stochastic_quantizer<2>,
                   tersum::stochastic_quantizer<3>,
                   tersum::stochastic_quantizer<4>,
                   tersum::stochastic_quantizer<5>,
                   tersum::stochastic_quantizer<6>,
                   tersum::stochastic_quantizer<7>,
                   tersum::stochastic_quantizer<8>,
                   tersum::stochastic_quantizer<4, tersum::independent>,
                   tersum::nearest_quantizer<2>,
                   tersum::nearest_quantizer<3>,
                   tersum::nearest_quantizer<4>,
                   tersum::nearest_quantizer<5>,
                   tersum::nearest_quantizer<6>,
                   tersum::nearest_quantizer<7>,
                   tersum::nearest_quantizer<8>)
{
  static_assert(tersum::has_grid<Quantizer>);
  tersum::tests::check_quantizer_laws<Quantizer>();
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

}  // namespace
