// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codebooks of Lloyd and Max for normal values, against their conditions in double precision.

#include <tersum/quantize/lloyd_max.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

using namespace tersum;

namespace {

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double beyond(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

// Positive levels and the ends of their cells, midway between them.
struct cells {
  std::vector<double> level, begin, end;
};

template <class Quantizer>
cells cells_of()
{
  cells out;
  for (int k = 0; k < Quantizer::magnitudes; ++k) {
    out.level.push_back(static_cast<double>(Quantizer::levels()[k]));
  }
  for (std::size_t k = 0; k < out.level.size(); ++k) {
    out.begin.push_back(k == 0 ? 0 : (out.level[k - 1] + out.level[k]) / 2);
    out.end.push_back(k + 1 < out.level.size() ? (out.level[k] + out.level[k + 1]) / 2
                                               : std::numeric_limits<double>::infinity());
  }
  return out;
}

template <class Check>
void for_each_width(Check const& check)
{
  [&]<int... Number>(std::integer_sequence<int, Number...>)
  {
    (check(lloyd_max<Number + 1>{}), ...);
  }
  (std::make_integer_sequence<int, 8>{});
}

TEST_CASE("[lloyd_max] every level is the mean of its cell, which ends midway between levels")
{
  for_each_width([]<class Quantizer>(Quantizer) {
    cells const all = cells_of<Quantizer>();
    for (std::size_t k = 0; k < all.level.size(); ++k) {
      CAPTURE(Quantizer::bits);
      CAPTURE(k);
      double const weight = beyond(all.begin[k]) - beyond(all.end[k]);
      double const mean   = (density(all.begin[k]) - density(all.end[k])) / weight;
      // Of a log-concave density a cell's mean moves by less than its ends do; so it is off by at most what rounding to
      // float, half of 2^-23, moves the level itself and its neighbours. Up to 4 bits it is half of the floats that end alike.
      double const largest = k + 1 < all.level.size() ? all.level[k + 1] : all.level[k];
      int const alike      = Quantizer::bits <= 4 ? Quantizer::magnitudes : 1;
      CHECK(std::abs(all.level[k] - mean) <= 2 * 0x1p-24 * alike * largest);
      if (alike > 1) {
        auto const bits = std::bit_cast<std::uint32_t>(Quantizer::levels()[k]);
        CHECK((bits & (Quantizer::magnitudes - 1u)) == k);
      }
    }
  });
}

TEST_CASE("[lloyd_max] the errors are those of EDEN")
{
  double const published[] = {.571, .133, .0358, .00959, .00251};
  for_each_width([&]<class Quantizer>(Quantizer) {
    CAPTURE(Quantizer::bits);
    cells const all = cells_of<Quantizer>();
    double kept     = 0;
    for (std::size_t k = 0; k < all.level.size(); ++k) {
      kept += 2 * all.level[k] * (density(all.begin[k]) - density(all.end[k]));
    }
    // With levels that are means, E[x level] = E[level^2] = 1 - D.
    double const unbiased = (1 - kept) / kept;
    CHECK(static_cast<double>(Quantizer::distortion()) == doctest::Approx(unbiased).epsilon(1e-5));
    if (Quantizer::bits <= 5) {
      CHECK(unbiased == doctest::Approx(published[Quantizer::bits - 1]).epsilon(.002));
    }
  });
}

TEST_CASE("[lloyd_max] a value takes the level that is nearest, ties the larger one")
{
  for_each_width([]<class Quantizer>(Quantizer quantizer) {
    CAPTURE(Quantizer::bits);
    constexpr std::uint32_t sign = 1u << (Quantizer::bits - 1);
    for (std::uint32_t k = 0; k < Quantizer::magnitudes; ++k) {
      float const level = quantizer.decode(k);
      CHECK(level == Quantizer::levels()[k]);
      CHECK(quantizer.decode(k | sign) == -level);
      CHECK(quantizer.encode(level) == k);
      CHECK(quantizer.encode(-level) == (k | sign));
      if (k + 1 == Quantizer::magnitudes) { continue; }
      float const end = Quantizer::boundaries()[k];
      CHECK(end == (level + Quantizer::levels()[k + 1]) / 2);
      CHECK(quantizer.encode(end) == k + 1);
      CHECK(quantizer.encode(std::nextafterf(end, 0)) == k);
      CHECK(quantizer.encode(-std::nextafterf(end, 0)) == (k | sign));
    }
    CHECK(quantizer.encode(1e30f) == sign - 1);
    CHECK(quantizer.encode(0.0f) == 0);
  });
}

TEST_CASE("[lloyd_max] 16 bits are halves, whose error is that of rounding normal values to them")
{
  // In [2^e, 2^(e + 1)) halves are 2^(e - 10) apart, and the error is alike everywhere between two of them.
  double lost = 0;
  for (int e = -14; e < 5; ++e) {
    double const inside = 2 * (beyond(std::exp2(e)) - beyond(std::exp2(e + 1)));
    lost += inside * std::exp2(2 * (e - 10)) / 12;
  }
  CHECK(static_cast<double>(lloyd_max<16>::distortion()) == doctest::Approx(lost).epsilon(1e-5));
  lloyd_max<16> const book{};
  CHECK(book.encode(1.0f) == 0x3c00);
  CHECK(book.encode(-2.5f) == 0xc100);
  CHECK(book.decode(0x3555) == 0x1.554p-2f);
  CHECK(book.encode(1.0f + 0x1p-11f) == 0x3c00);  // ties to even
}

static_assert(lloyd_max<4>{}.encode(-10.0f) == 15 && lloyd_max<1>{}.decode(1) < -.79f);

}  // namespace
