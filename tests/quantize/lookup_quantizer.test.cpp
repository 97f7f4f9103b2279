// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Tables of THC: the optimum by dynamic programming, rounding by expectation, the error of an exchange.

#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

using namespace tersum;

namespace {

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Variance of unbiased rounding of the normal values between two levels: the integral of (x - a)(b - x) density(x).
double variance(double a, double b)
{
  double const weight = below(b) - below(a);
  double const first  = density(a) - density(b);
  double const second = weight + a * density(a) - b * density(b);
  return (a + b) * first - second - a * b * weight;
}

struct table_of {
  std::vector<int> value;
  double error;
};

// Levels -t + 2 t k / g for increasing k, 0 and g among them, with the least variance: of the tables that end at k with
// l levels the best, for all k and l.
table_of best_table(int levels, int g, double t)
{
  auto const place = [&](int k) { return -t + 2 * t * k / g; };
  std::vector<std::vector<double>> least(
    static_cast<std::size_t>(levels),
    std::vector<double>(static_cast<std::size_t>(g) + 1, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<int>> from(static_cast<std::size_t>(levels),
                                     std::vector<int>(static_cast<std::size_t>(g) + 1));
  least[0][0] = 0;
  for (std::size_t l = 1; l < least.size(); ++l) {
    for (int k = 1; k <= g; ++k) {
      for (int j = 0; j < k; ++j) {
        double const with =
          least[l - 1][static_cast<std::size_t>(j)] + variance(place(j), place(k));
        if (with < least[l][static_cast<std::size_t>(k)]) {
          least[l][static_cast<std::size_t>(k)] = with;
          from[l][static_cast<std::size_t>(k)]  = j;
        }
      }
    }
  }
  table_of out{{g}, least.back().back()};
  for (std::size_t l = least.size() - 1; l > 0; --l) {
    out.value.insert(out.value.begin(), from[l][static_cast<std::size_t>(out.value.front())]);
  }
  return out;
}

template <class Table>
double error_of(double t)
{
  double sum = 0;
  for (int i = 0; i + 1 < Table::count; ++i) {
    auto const place = [&](int k) { return -t + 2 * t * k / Table::granularity; };
    sum += variance(place(Table::value[i]), place(Table::value[i + 1]));
  }
  return sum;
}

// Ends of the range outside of which a share of 1/32 or 1/1024 of a normal distribution lies, both sides together.
constexpr double t_32   = 2.153874694;
constexpr double t_1024 = 3.297193346;

}  // namespace

TEST_CASE("[lookup] dynamic programming finds the table of granularity 42, and its error")
{
  auto const best = best_table(16, 42, t_1024);
  CHECK(best.value == std::vector<int>(thc_table_42::value, thc_table_42::value + 16));
  CHECK(best.error == doctest::Approx(.0213318).epsilon(1e-5));
  CHECK(error_of<thc_table_42>(t_1024) == doctest::Approx(best.error).epsilon(1e-12));
  // As many levels at even distances have half as much again.
  CHECK(best_table(16, 15, t_1024).error == doctest::Approx(.03218).epsilon(1e-3));
}

TEST_CASE("[lookup] the table of granularity 30 is within a thousandth of the optimum")
{
  auto const best = best_table(16, 30, t_32);
  CHECK(best.error == doctest::Approx(.0130625).epsilon(1e-5));
  CHECK(error_of<thc_table_30>(t_32) == doctest::Approx(.0130746).epsilon(1e-5));
}

TEST_CASE("[lookup] rounding is to the two neighbours in the table, and unbiased")
{
  using table = thc_table_42;
  lookup_quantizer<table> const quantizer;
  constexpr int half = table::granularity / 2;
  for (int y = -half * 256 - 300; y <= half * 256 + 300; ++y) {
    double const x = std::clamp(y / 256.0, -1.0 * half, 1.0 * half);
    int low = 0, high = table::count - 1;
    while (table::value[low + 1] - half <= x && low + 2 < table::count) { ++low; }
    while (table::value[high - 1] - half >= x && high > 1) { --high; }
    double mean = 0, mirrored = 0;
    for (std::uint32_t random = 0; random < 256; ++random) {
      int const code = quantizer.encode(static_cast<float>(y), 1.0f, random);
      REQUIRE(code >= table::value[low] - half);
      REQUIRE(code <= table::value[high] - half);
      mean += code / 256.0;
      mirrored += quantizer.encode(static_cast<float>(-y), 1.0f, random) / 256.0;
    }
    CAPTURE(y);
    // The place between two levels is rounded to 1/256 of a gap of at most six steps.
    REQUIRE(std::abs(mean - x) <= 6.0 / 512);
    REQUIRE(mean == -mirrored);
  }
  CHECK(quantizer.encode(std::numeric_limits<float>::infinity(), 1.0f, 0) == half);
}

TEST_CASE("[lookup] the error of an exchange is that of the table and of what the range cuts off")
{
  constexpr std::size_t d = std::size_t{1} << 18;
  auto in                 = tests::normal_gradients<std::mt19937_64>(4, d, 29);
  using codec_type        = std::remove_cv_t<decltype(presets::thc_lookup4)>;
  tests::loopback_run<codec_type> run{presets::thc_lookup4, layout{d}, 4, 99};
  // Independent gradients and independent rounding: the error over the energy of the mean is that of one rank. Beyond
  // the range 2 ((1 + t^2) Q(t) - t density(t)) is lost besides: next to nothing. 2^18 coordinates: five standard
  // deviations of a squared error, each of which is within twice its mean, are less than .02 of it.
  double const cut = 2 * ((1 + t_1024 * t_1024) * below(-t_1024) - t_1024 * density(t_1024));
  CHECK(tests::nmse(in, run.exchange(in)[0]) ==
        doctest::Approx(error_of<thc_table_42>(t_1024) + cut).epsilon(.02));
}
