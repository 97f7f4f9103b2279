// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The helpers that stand in for the standard library in device code.

#include "support/mismatches.hpp"

#include <tersum/detail/bits.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

namespace detail = tersum::detail;
using tersum::tests::mismatches;

TEST_CASE("[bits] floats and their bits convert both ways, NaN payloads included")
{
  mismatches wrong;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521) {
    auto const pattern = static_cast<std::uint32_t>(bits);
    float const value  = std::bit_cast<float>(pattern);
    wrong.expect(detail::float_bits(value), pattern, pattern);
    wrong.expect(detail::float_bits(detail::bits_float(pattern)), pattern, pattern);
    wrong.expect(
      detail::bit_cast<std::uint32_t>(detail::bit_cast<float>(pattern)), pattern, pattern);
    wrong.expect(detail::is_finite(value), std::isfinite(value), pattern);
  }
  CHECK(wrong.report() == "");
  CHECK_FALSE(detail::is_finite(std::numeric_limits<float>::infinity()));
  CHECK_FALSE(detail::is_finite(-std::numeric_limits<float>::infinity()));
  CHECK_FALSE(detail::is_finite(std::numeric_limits<float>::quiet_NaN()));
  CHECK(detail::is_finite(std::numeric_limits<float>::max()));
}

TEST_CASE("[bits] minimum and maximum order numbers")
{
  static_assert(detail::minimum(-1, 2) == -1 && detail::minimum(2, -1) == -1 &&
                detail::minimum(3, 3) == 3);
  static_assert(detail::maximum(-1, 2) == 2 && detail::maximum(2, -1) == 2 &&
                detail::maximum(3, 3) == 3);
  static_assert(detail::minimum(1.5f, -0.5f) == -0.5f && detail::maximum(1.5f, -0.5f) == 1.5f);
}

TEST_CASE("[bits] log2_exact inverts the powers of two")
{
  for (int log = 0; log < 64; ++log) { CHECK(detail::log2_exact(std::uint64_t{1} << log) == log); }
}

TEST_CASE("[bits] round_up gives the least multiple that is not below")
{
  for (std::size_t const multiple : {1u, 3u, 16u, 128u, 1000u}) {
    for (std::size_t value = 0; value <= 2100; ++value) {
      std::size_t const up = detail::round_up(value, multiple);
      if (up % multiple == 0 && up >= value && up - value < multiple) { continue; }
      CAPTURE(value);
      CAPTURE(multiple);
      FAIL_CHECK("not the least multiple: " << up);
    }
  }
  CHECK(detail::round_up((std::size_t{1} << 40) + 1, 16) == (std::size_t{1} << 40) + 16);
}

TEST_CASE("[bits] reverse_byte mirrors the lowest eight bits and ignores the others")
{
  mismatches wrong;
  for (std::uint32_t rank = 0; rank < 1024; ++rank) {
    std::uint32_t want = 0;
    for (std::uint32_t power = 1; power <= 128; power *= 2) {
      want += rank / power % 2 * (128 / power);
    }
    wrong.expect(detail::reverse_byte(rank), want, rank);
  }
  CHECK(wrong.report() == "");
}

}  // namespace
