// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The 16-bit storage types against their definitions, over every pattern and every tie.

#include "support/flush_subnormals.hpp"
#include "support/mismatches.hpp"
#include "support/reference_float.hpp"

#include <tersum/reduce/native.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using tersum::bfloat16;
using tersum::half;
namespace tests = tersum::tests;
using tersum::tests::mismatches;
using tersum::tests::reference_bfloat16;
using tersum::tests::reference_half;
using tersum::tests::reference_of;

constexpr float infinity = std::numeric_limits<float>::infinity();

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// Floats of both signs that decide how a format rounds: each of its values and each tie, with the float below and the float
// above; the same around every power of two; NaNs of many payloads; and samples of all patterns.
template <class Reference>
std::vector<float> rounding_cases(Reference const& reference)
{
  std::vector<float> cases;
  auto const around = [&](float value) {
    for (float const near : {std::nextafter(value, 0.0f), value, std::nextafter(value, infinity)}) {
      cases.push_back(near);
      cases.push_back(-near);
    }
  };
  for (std::uint16_t bits = 0; bits < Reference::infinity; ++bits) {
    around(static_cast<float>(Reference::value(bits)));
    around(static_cast<float>(reference.midpoint(bits)));
  }
  for (int exponent = -149; exponent <= 127; ++exponent) { around(std::ldexp(1.0f, exponent)); }
  around(infinity);
  for (std::uint32_t payload = 1; payload < 0x00800000u; payload += 4099) {
    cases.push_back(float_of(0x7f800000u | payload));
    cases.push_back(float_of(0xff800000u | payload));
  }
  cases.push_back(float_of(0x7fffffffu));
  cases.push_back(float_of(0xffffffffu));
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4093) {
    cases.push_back(float_of(static_cast<std::uint32_t>(bits)));
  }
  std::mt19937 random(20260101);
  for (int i = 0; i < 1 << 18; ++i) {
    cases.push_back(float_of(static_cast<std::uint32_t>(random())));
  }
  return cases;
}

TEST_CASE("[types] storage types have the layout of the CUDA types and of one vector access")
{
  static_assert(sizeof(half) == 2 && alignof(half) == 2);
  static_assert(sizeof(bfloat16) == 2 && alignof(bfloat16) == 2);
  static_assert(sizeof(tersum::word4) == 16 && alignof(tersum::word4) == 16);
  static_assert(std::is_trivial_v<half> && std::is_standard_layout_v<half>);
  static_assert(std::is_trivial_v<bfloat16> && std::is_standard_layout_v<bfloat16>);
  static_assert(std::is_trivial_v<tersum::word4> && std::is_standard_layout_v<tersum::word4>);

  struct bytes {
    unsigned char at[16];
  };
  auto const word =
    std::bit_cast<bytes>(tersum::word4{0x03020100u, 0x07060504u, 0x0b0a0908u, 0x0f0e0d0cu});
  for (int i = 0; i < 16; ++i) { CHECK(word.at[i] == i); }
}

TEST_CASE("[types] every half converts to the float of the same value, NaN to 0x7fffffff")
{
  mismatches wrong;
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    auto const pattern       = static_cast<std::uint16_t>(bits);
    std::uint32_t const want = reference_half::is_nan(pattern)
                                 ? 0x7fffffffu
                                 : bits_of(static_cast<float>(reference_half::value(pattern)));
    wrong.expect(bits_of(to_float(half::from_bits(pattern))), want, bits);
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[types] every bfloat16 converts to the float of the same value, NaN with its payload")
{
  mismatches wrong;
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    auto const pattern = static_cast<std::uint16_t>(bits);
    float const got    = to_float(bfloat16::from_bits(pattern));
    if (reference_bfloat16::is_nan(pattern)) {
      wrong.expect(bits_of(got), bits << 16, bits);
    } else {
      wrong.expect(
        bits_of(got), bits_of(static_cast<float>(reference_bfloat16::value(pattern))), bits);
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE_TEMPLATE("[types] float rounds to the nearest value, ties to even, NaN to 0x7fff",
                   T,
                   half,
                   bfloat16)
{
  reference_of<T> const reference;
  mismatches wrong;
  for (float const value : rounding_cases(reference)) {
    wrong.expect(tersum::from_float<T>(value).bits, reference.round(value), bits_of(value));
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[types] halves overflow at 65520, bfloat16 halfway beyond its largest value")
{
  CHECK(tersum::to_half(65504.0f).bits == 0x7bff);
  CHECK(tersum::to_half(std::nextafter(65520.0f, 0.0f)).bits == 0x7bff);
  CHECK(tersum::to_half(65520.0f).bits == 0x7c00);
  CHECK(tersum::to_half(-65520.0f).bits == 0xfc00);
  CHECK(tersum::to_half(infinity).bits == 0x7c00);
  CHECK(tersum::to_half(-infinity).bits == 0xfc00);
  CHECK(tersum::to_half(0x1p-25f).bits == 0x0000);
  CHECK(tersum::to_half(std::nextafter(0x1p-25f, 1.0f)).bits == 0x0001);
  CHECK(tersum::to_half(-0.0f).bits == 0x8000);

  CHECK(tersum::to_bfloat16(std::nextafter(0x1.ffp127f, 0.0f)).bits == 0x7f7f);
  CHECK(tersum::to_bfloat16(0x1.ffp127f).bits == 0x7f80);
  CHECK(tersum::to_bfloat16(-0x1.ffp127f).bits == 0xff80);
  CHECK(tersum::to_bfloat16(-infinity).bits == 0xff80);
  CHECK(tersum::to_bfloat16(-0.0f).bits == 0x8000);
}

TEST_CASE_TEMPLATE(
  "[types] a float makes the half or bfloat16 of its value, and no other number does",
  T,
  half,
  bfloat16)
{
  static_assert(std::is_constructible_v<T, float> && !std::is_convertible_v<float, T>);
  static_assert(!std::is_constructible_v<T, double> && !std::is_constructible_v<T, int>);
  static_assert(!std::is_constructible_v<T, std::uint16_t> && !std::is_constructible_v<T, T, T>);
  constexpr T made(1.5f);
  CHECK(made.bits == (std::is_same_v<T, half> ? 0x3e00 : 0x3fc0));
  CHECK(T::from_bits(made.bits) == made);
  CHECK(T{} == T(0.0f));
  for (float const value : {0.1f, -2.5f, 65504.0f, 0x1p-20f, infinity}) {
    CHECK(T(value) == tersum::from_float<T>(value));
  }
}

TEST_CASE("[types] to_bfloat16_upwards gives the smallest bfloat16 that is not below")
{
  reference_bfloat16 const reference;
  mismatches below, minimal;
  for (float const value : rounding_cases(reference)) {
    if (std::isnan(value) || std::signbit(value)) { continue; }
    bfloat16 const up = tersum::to_bfloat16_upwards(value);
    below.expect(reference_bfloat16::value(up.bits) >= value, true, bits_of(value), up.bits);
    if (up.bits == 0) { continue; }
    auto const previous = static_cast<std::uint16_t>(up.bits - 1);
    minimal.expect(reference_bfloat16::value(previous) < value, true, bits_of(value), up.bits);
  }
  CHECK(below.report() == "");
  CHECK(minimal.report() == "");
}

TEST_CASE("[types] float passes through the conversions of a gradient element")
{
  static_assert(tersum::gradient_element<float>);
  static_assert(!tersum::gradient_element<double>);
  static_assert(!tersum::gradient_element<std::uint16_t>);
  CHECK(bits_of(tersum::from_float<float>(tersum::to_float(float_of(0x7fa00001u)))) == 0x7fa00001u);
}

TEST_CASE_TEMPLATE("[types] conversions are the same where arithmetic flushes subnormals to zero",
                   T,
                   half,
                   bfloat16)
{
  if (!tests::flush_subnormals::works()) {
    MESSAGE("not tested: no such switch");
    return;
  }
  struct answer {
    std::uint32_t whole;
    std::uint16_t there, upwards;
    bool operator==(answer const&) const = default;
  };
  // Every pattern towards float; floats of every exponent, the subnormal ones among them, back.
  auto const answers = [] {
    std::vector<answer> all;
    for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
      std::uint32_t const pattern = bits << 16 | (bits * 40503u & 0xffffu);
      float const value           = float_of(pattern);
      all.push_back({bits_of(to_float(T::from_bits(static_cast<std::uint16_t>(bits)))),
                     tersum::from_float<T>(value).bits,
                     tersum::to_bfloat16_upwards(float_of(pattern & 0x7fffffffu)).bits});
    }
    return all;
  };
  auto const want = answers();
  auto const got  = [&] {
    tests::flush_subnormals const scope;
    return answers();
  }();
  mismatches wrong;
  for (std::size_t i = 0; i < want.size(); ++i) { wrong.expect(got[i] == want[i], true, i); }
  CHECK(wrong.report() == "");
}

TEST_CASE("[types] a sum of halves is exact down to the least where subnormals are flushed")
{
  if (!tests::flush_subnormals::works()) {
    MESSAGE("not tested: no such switch");
    return;
  }
  // Below 2^-13 sums of halves are halves: those of the patterns, which count units of 2^-24.
  mismatches wrong;
  {
    tests::flush_subnormals const scope;
    for (std::uint16_t a = 0; a < 0x0400; a = static_cast<std::uint16_t>(a + 7)) {
      for (std::uint16_t b = 0; b < 0x0400; ++b) {
        half const sum = tersum::native_sum<half>{}(half::from_bits(a), half::from_bits(b));
        wrong.expect(sum.bits, static_cast<std::uint16_t>(a + b), a, b);
      }
    }
  }
  CHECK(wrong.report() == "");
}

}  // namespace
