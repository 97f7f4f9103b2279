// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the range role, for every range of the library and of its users.

#pragma once

#include "on_groups.hpp"

#include <tersum/concepts.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! @brief Checks every law of the role on chunks of `Size`.
//!
//! - All groups measure the same bits, whatever the scratch holds.
//! - What is measured is not negative, and zero of zeros.
//! - Of a chunk that is twice as large the range and the bound are twice as large, exactly.
//! - Ranks with the same chunk agree on the range of one of them.
//! - No value is above the bound, and the bound says whether a gradient is not finite.
template <int Size, quantization_range Range>
void check_range_laws(Range const& range = {})
{
  using scalar = typename Range::scalar;
  static_assert(std::is_same_v<scalar, float> || std::is_same_v<scalar, bfloat16>);
  static_assert(std::is_same_v<typename Range::op::element, scalar>);
  auto const measure = [&](auto const& g, auto& x, auto& scratch) {
    return range.measure(g, x, scratch);
  };
  auto const measured = [&](std::vector<float> const& in) {
    return on_host<Size>(in, measure).said;
  };
  // What so many ranks with the same chunk agree on.
  auto const agreed = [&](float value, int world) {
    scalar const own = from_float<scalar>(value);
    scalar all       = own;
    for (int rank = 1; rank < world; ++rank) { all = typename Range::op{}(all, own); }
    return to_float(all);
  };
  std::vector<float> const in = make_chunk(Size, 5);
  float const value           = measured(in);
  CHECK(range.clip > 0);

  SUBCASE("groups of all sizes measure the same bits") { check_groups<Size>(in, measure); }

  SUBCASE("nothing is measured of zeros")
  {
    CHECK(measured(std::vector<float>(Size)) == 0);
    CHECK(range.rank_range(0, 3, Size) == 0);
    CHECK(range.bound(0, 3, Size) == 0);
    CHECK(value > 0);
  }

  SUBCASE("the range is as large as the chunk")
  {
    std::vector<float> larger = in;
    for (float& v : larger) { v *= 4; }
    float const four = measured(larger);
    CHECK(range.rank_range(agreed(four, 2), 2, Size) ==
          4 * range.rank_range(agreed(value, 2), 2, Size));
    CHECK(range.bound(agreed(four, 2), 2, Size) == 4 * range.bound(agreed(value, 2), 2, Size));
  }

  SUBCASE("ranks with the same chunk agree on its range")
  {
    // Seven sums of a scalar round to 2^-8 at most.
    double const one  = static_cast<double>(range.rank_range(agreed(value, 1), 1, Size));
    double const many = static_cast<double>(range.rank_range(agreed(value, 8), 8, Size));
    CHECK(std::abs(many / one - 1) < 7 * 0x1p-8);
  }

  SUBCASE("no value is above the bound")
  {
    // But for the rounding of what is measured.
    double const bound = static_cast<double>(range.bound(agreed(value, 1), 1, Size));
    for (float const v : in) { REQUIRE(std::abs(static_cast<double>(v)) <= bound * (1 + 0x1p-8)); }
  }

  SUBCASE("what is not finite shows")
  {
    for (float const bad : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> spoiled = in;
      spoiled[Size / 3]          = bad;
      CHECK_FALSE(std::isfinite(measured(spoiled)));
      CHECK_FALSE(std::isfinite(range.bound(std::numeric_limits<float>::infinity(), 2, Size)));
    }
  }
}

//! @brief Checks every law of the head-room role: for one rank the range of the sum is its own; the factor is finite and above
//! zero; only one that says `tracked` follows the correlation, and upwards.
template <headroom Headroom>
void check_headroom_laws(Headroom const& room = {})
{
  CHECK(room.factor(1, 1.0f) == 1.0f);
  for (int const world : {1, 2, 5, 64, 65521}) {
    CAPTURE(world);
    float last = 0;
    for (float const ratio : {0.01f, 0.5f, 1.0f, 3.0f, 100.0f, 1e6f}) {
      float const factor = room.factor(world, ratio);
      CHECK(std::isfinite(factor));
      CHECK(factor > 0);
      CHECK(factor >= last);
      if (!Headroom::tracked) { CHECK(factor == room.factor(world, 1.0f)); }
      last = factor;
    }
    if (Headroom::tracked && world > 1) { CHECK(last > room.factor(world, 0.01f)); }
  }
}

}  // namespace tersum::tests
