// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What vectors of four do in double where there is no fused multiply-add, against std::fma.

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/detail/bits.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace {

using namespace tersum;
namespace vectors = detail::cpu_baseline;

struct operands {
  float a, b, c;
};

// Calls make(random) for four lanes at a time; returns how many lanes differ from std::fma.
template <class Make>
int count_wrong(Make const& make)
{
  std::mt19937 random(3);
  int wrong = 0;
  for (int i = 0; i < 50'000; ++i) {
    vectors::floats a, b, c;
    for (int lane = 0; lane < vectors::width; ++lane) {
      operands const of = make(random);
      a[lane]           = of.a;
      b[lane]           = of.b;
      c[lane]           = of.c;
    }
    vectors::floats const guessed = vectors::fma(a, b, c), sure = vectors::fma_of_few_bits(a, b, c);
    for (int lane = 0; lane < vectors::width; ++lane) {
      float const want      = std::fma(a[lane], b[lane], c[lane]);
      auto const is_as_want = [&](float got) {
        return std::isnan(want) ? std::isnan(got)
                                : detail::float_bits(got) == detail::float_bits(want);
      };
      wrong += is_as_want(guessed[lane]) && is_as_want(sure[lane]) ? 0 : 1;
    }
  }
  return wrong;
}

// A float of random sign and significand, of that exponent.
float of_exponent(std::mt19937& random, int exponent)
{
  auto const bits = static_cast<std::uint32_t>(random());
  return std::ldexp(detail::bits_float((bits & 0x807fffffu) | 0x3f800000u), exponent);
}

int below(std::mt19937& random, unsigned bound) { return static_cast<int>(random() % bound); }

// A sum of that exponent and 2^half, which is half a unit of its last place, or 2^half less or more what double may lose.
operands nearly_halfway(std::mt19937& random, int exponent, int half)
{
  auto const near_one = [&] {
    return std::ldexp(1.0f + static_cast<float>(below(random, 5) - 2) * 0x1p-23f, half / 2);
  };
  float const a = near_one();
  float const b = near_one();
  return {random() % 2 == 0 ? a : -a, b, of_exponent(random, exponent)};
}

TEST_CASE("[execute] a fused multiply-add in double rounds once")
{
  SUBCASE("any bits, NaN and infinity among them")
  {
    auto const any = [](std::mt19937& random) {
      return detail::bits_float(static_cast<std::uint32_t>(random()));
    };
    CHECK(count_wrong([&](std::mt19937& random) {
            return operands{any(random), any(random), any(random)};
          }) == 0);
  }
  SUBCASE("near half a unit in the last place of the sum, and on it")
  {
    CHECK(count_wrong([](std::mt19937& random) { return nearly_halfway(random, 0, -24); }) == 0);
  }
  SUBCASE("the same where the sum is not normal")
  {
    CHECK(count_wrong([](std::mt19937& random) { return nearly_halfway(random, -128, -150); }) ==
          0);
  }
  SUBCASE("few bits, so that many sums lie halfway")
  {
    CHECK(count_wrong([](std::mt19937& random) {
            auto const small = [&] { return static_cast<float>(below(random, 8193) - 4096); };
            return operands{small(), small(), std::ldexp(small(), below(random, 20))};
          }) == 0);
  }
  SUBCASE("results that are not normal")
  {
    CHECK(count_wrong([](std::mt19937& random) {
            return operands{of_exponent(random, -60 - below(random, 20)),
                            of_exponent(random, -60 - below(random, 20)),
                            of_exponent(random, -120 - below(random, 29))};
          }) == 0);
  }
  SUBCASE("results that overflow or nearly do")
  {
    CHECK(count_wrong([](std::mt19937& random) {
            return operands{of_exponent(random, 60 + below(random, 8)),
                            of_exponent(random, 60 + below(random, 8)),
                            of_exponent(random, 127)};
          }) == 0);
  }
  SUBCASE("squares, as norms add them")
  {
    CHECK(count_wrong([](std::mt19937& random) {
            float const a = of_exponent(random, below(random, 8));
            return operands{a, a, std::abs(of_exponent(random, below(random, 40)))};
          }) == 0);
  }
}

}  // namespace
