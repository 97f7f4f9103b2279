// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sum and maximum of every element type against double precision rounded once.

#include "conformance/reducer_conformance.hpp"
#include "support/mismatches.hpp"
#include "support/reference_float.hpp"

#include <tersum/reduce/native.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using tersum::bfloat16;
using tersum::half;
using tersum::native_max;
using tersum::native_sum;
using tersum::tests::mismatches;
using tersum::tests::reference_of;

// Patterns around every exponent, both zeros, subnormals, the largest, infinities and NaNs; then random ones.
template <class T>
std::vector<std::uint16_t> patterns()
{
  std::vector<std::uint16_t> all;
  for (std::uint32_t bits = 0; bits < 0x10000u; bits += std::is_same_v<T, half> ? 0x400u : 0x80u) {
    for (std::uint32_t const near : {bits, bits + 1, bits + 0x3fu, (bits - 1) & 0xffffu}) {
      all.push_back(static_cast<std::uint16_t>(near));
    }
  }
  std::mt19937 random(89);
  for (int i = 0; i < 700; ++i) { all.push_back(static_cast<std::uint16_t>(random() & 0xffffu)); }
  return all;
}

TEST_CASE_TEMPLATE("[native] a 16-bit sum is the exact sum, rounded once to nearest even",
                   T,
                   half,
                   bfloat16)
{
  // In double the sum of two halves is exact. That of two bfloat16 may round, but double has more
  // than twice the digits of bfloat16 and two, so rounding twice does no harm (Figueroa, 1995).
  reference_of<T> const reference;
  native_sum<T> const sum;
  mismatches wrong;
  auto const all = patterns<T>();
  for (std::uint16_t const a : all) {
    for (std::uint16_t const b : all) {
      bool const nan = reference.is_nan(a) || reference.is_nan(b);
      double const exact =
        nan ? std::numeric_limits<double>::quiet_NaN() : reference.value(a) + reference.value(b);
      std::uint16_t const want = reference.round(exact);
      wrong.expect(sum(T::from_bits(a), T::from_bits(b)).bits, want, a, b);
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE_TEMPLATE("[native] a 16-bit maximum is the larger number", T, half, bfloat16)
{
  reference_of<T> const reference;
  native_max<T> const max;
  mismatches wrong;
  auto const all = patterns<T>();
  for (std::uint16_t const a : all) {
    for (std::uint16_t const b : all) {
      if (reference.is_nan(a) || reference.is_nan(b)) { continue; }
      T const got = max(T::from_bits(a), T::from_bits(b));
      wrong.expect(got.bits == a || got.bits == b, true, a, b);
      wrong.expect(
        reference.value(got.bits), std::max(reference.value(a), reference.value(b)), a, b);
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[native] float sums and maxima are those of double precision")
{
  mismatches sums, maxima;
  std::mt19937 random(97);
  for (int i = 0; i < 1 << 20; ++i) {
    auto const pattern = static_cast<std::uint32_t>(random());
    float const a      = std::bit_cast<float>(pattern);
    // Half of the pairs are close in magnitude, so that their digits overlap or cancel.
    float const b =
      std::bit_cast<float>(i % 2 ? static_cast<std::uint32_t>(random())
                                 : pattern ^ (static_cast<std::uint32_t>(random()) & 0x81ffffffu));
    if (std::isnan(a) || std::isnan(b)) { continue; }
    double const exact = static_cast<double>(a) + static_cast<double>(b);
    maxima.expect(native_max<float>{}(a, b), std::max(a, b), a, b);
    if (std::isnan(exact)) {
      sums.expect(std::isnan(native_sum<float>{}(a, b)), true, a, b);
    } else if (std::fabs(exact) < 0x1.ffffffp127) {
      sums.expect(native_sum<float>{}(a, b), static_cast<float>(exact), a, b);
    } else {
      float const infinity = std::numeric_limits<float>::infinity();
      sums.expect(native_sum<float>{}(a, b), exact < 0 ? -infinity : infinity, a, b);
    }
  }
  CHECK(sums.report() == "");
  CHECK(maxima.report() == "");
}

TEST_CASE_TEMPLATE("[native] integer sums are exact modulo their width, and maxima the larger",
                   T,
                   std::int8_t,
                   std::uint8_t,
                   std::int16_t,
                   std::int32_t,
                   std::uint32_t,
                   std::int64_t,
                   std::uint64_t)
{
  using limits = std::numeric_limits<T>;
  mismatches sums, maxima;
  std::mt19937_64 random(101);
  std::vector<T> values = {
    T{0}, T{1}, static_cast<T>(-1), limits::min(), limits::max(), limits::max() / 2};
  for (int i = 0; i < 250; ++i) { values.push_back(static_cast<T>(random())); }
  for (T const a : values) {
    for (T const b : values) {
      auto const wide =
        static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      sums.expect(native_sum<T>{}(a, b), wide, a, b);
      maxima.expect(native_max<T>{}(a, b), std::max(a, b), a, b);
    }
  }
  CHECK(sums.report() == "");
  CHECK(maxima.report() == "");
}

TEST_CASE_TEMPLATE("[native] reductions obey the laws of their role",
                   Op,
                   native_sum<float>,
                   native_sum<half>,
                   native_sum<bfloat16>,
                   native_sum<std::int8_t>,
                   native_sum<std::int16_t>,
                   native_sum<std::uint32_t>,
                   native_sum<std::uint64_t>,
                   native_max<float>,
                   native_max<half>,
                   native_max<bfloat16>,
                   native_max<std::uint32_t>)
{
  tersum::tests::check_reduce_op_laws<Op>();
}

}  // namespace
