// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codebooks of Lloyd and Max for normal values, against their conditions in double precision.

#include <tersum/quantize/lloyd_max.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

using namespace tersum;

namespace {

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double beyond(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

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
    auto const level = [](int k) { return static_cast<double>(Quantizer::levels()[k]); };
    for (int k = 0; k < Quantizer::magnitudes; ++k) {
      CAPTURE(Quantizer::bits);
      CAPTURE(k);
      bool const last    = k + 1 == Quantizer::magnitudes;
      double const begin = k == 0 ? 0 : (level(k - 1) + level(k)) / 2;
      double const end   = last ? HUGE_VAL : (level(k) + level(k + 1)) / 2;
      double const mean  = (density(begin) - density(end)) / (beyond(begin) - beyond(end));
      // Of a log-concave density a cell's mean moves by less than its ends do; so it is off by at most what rounding to
      // float, half of 2^-23, moves the level itself and its neighbours. Up to 4 bits it is half of the floats that end alike.
      double const largest = level(last ? k : k + 1);
      int const alike      = Quantizer::bits <= 4 ? Quantizer::magnitudes : 1;
      CHECK(std::abs(level(k) - mean) <= 2 * 0x1p-24 * alike * largest);
      if (alike > 1) {
        auto const bits = std::bit_cast<std::uint32_t>(Quantizer::levels()[k]);
        CHECK((bits & (Quantizer::magnitudes - 1u)) == static_cast<std::uint32_t>(k));
      }
    }
  });
}

TEST_CASE("[lloyd_max] the errors are those of EDEN, with 4 bits up to .6 % more")
{
  double const published[] = {.571, .133, .0358, .00959, .00251};
  for_each_width([&]<class Quantizer>(Quantizer) {
    CAPTURE(Quantizer::bits);
    double along = 0, square = 0, begin = 0;
    for (int k = 0; k < Quantizer::magnitudes; ++k) {
      auto const level = static_cast<double>(Quantizer::levels()[k]);
      auto const end   = static_cast<double>(Quantizer::boundaries()[k]);
      along += 2 * level * (density(begin) - density(end));
      square += 2 * level * level * (beyond(begin) - beyond(end));
      begin = end;
    }
    double const unbiased = square / (along * along) - 1;
    CHECK(static_cast<double>(Quantizer::distortion()) == doctest::Approx(unbiased).epsilon(1e-5));
    if (Quantizer::bits <= 5) {
      CHECK(unbiased == doctest::Approx(published[Quantizer::bits - 1])
                          .epsilon(Quantizer::bits == 4 ? .006 : .002));
    }
  });
}

TEST_CASE(
  "[lloyd_max] cells end midway between levels, or next to that where a level has a place, and an end is of the larger one")
{
  for_each_width([]<class Quantizer>(Quantizer quantizer) {
    CAPTURE(Quantizer::bits);
    for (std::uint32_t k = 0; k + 1 < Quantizer::magnitudes; ++k) {
      float const end    = Quantizer::boundaries()[k];
      float const middle = (Quantizer::levels()[k] + Quantizer::levels()[k + 1]) / 2;
      CHECK(std::abs(end - middle) <= (detail::has_places<Quantizer> ? .02f * middle : 0.0f));
      CHECK(quantizer.encode(end) == k + 1);
    }
  });
}

namespace {

// The number of a level by the formula of the wire format.
double level_on_lines(double number, double count)
{
  double const x = number * 2.75 / count;
  return std::max({x, 2 * x - 1.71875, 8 * x - 16.15625});
}

template <int Bits>
void check_lines()
{
  CAPTURE(Bits);
  constexpr lloyd_max<Bits> book{};
  constexpr std::uint32_t count = 1u << (Bits - 1);
  int wrong                     = 0;
  double lost                   = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    double const level = level_on_lines(n, count), next = level_on_lines(n + 1, count);
    auto const as_float = static_cast<float>(level);
    // Levels are exact, and a value takes the nearest. Its place is rounded once; factor and value are off by 2^-24 each.
    wrong += static_cast<double>(as_float) == level ? 0 : 1;
    wrong += book.decode(n) == as_float && book.decode(n | count) == -as_float ? 0 : 1;
    wrong += book.encode(as_float) == n && book.encode(-as_float) == (n | count) ? 0 : 1;
    double const middle = (level + next) / 2, off = 3 * 0x1p-24 * next;
    std::uint32_t const above = n + 1 < count ? n + 1 : n;
    wrong += book.encode(static_cast<float>(middle - off)) == n ? 0 : 1;
    wrong += book.encode(static_cast<float>(middle + off)) == above ? 0 : 1;
    // A cell is so short that the density is a line in it.
    double const before = n == 0 ? level : (level - level_on_lines(n - 1, count)) / 2;
    double const after  = n + 1 < count ? (next - level) / 2 : 0;
    lost += 2 * density(level) * (std::pow(before, 3) + std::pow(after, 3)) / 3;
  }
  CHECK(wrong == 0);
  CHECK(book.encode(1e30f) == count - 1);
  double const last = level_on_lines(count - 1, count);
  lost += 2 * ((1 + last * last) * beyond(last) - last * density(last));
  CHECK(static_cast<double>(book.distortion()) == doctest::Approx(lost).epsilon(.002).scale(0));
}

}  // namespace

TEST_CASE("[lloyd_max] from 9 bits on levels lie on three lines, and a value takes the nearest")
{
  check_lines<9>();
  check_lines<10>();
  check_lines<11>();
  check_lines<12>();
  check_lines<13>();
  check_lines<14>();
  check_lines<15>();
  check_lines<16>();
}

static_assert(lloyd_max<4>{}.encode(-10.0f) == 15 && lloyd_max<1>{}.decode(1) < -.79f);

}  // namespace
