// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the rotator role, for every rotator of the library and of its users.

#pragma once

#include "on_groups.hpp"

#include <tersum/concepts.hpp>
#include <tersum/random/philox.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace tersum::tests {

//! @brief Checks every law of the role on chunks of `Size`.
//!
//! - All groups compute the same bits, forward and backward, whatever the scratch holds.
//! - `forward` multiplies the norm by the root of `square_gain`, and `backward` after it gives the chunk `square_gain` times.
//! - Zeros stay zeros.
//! - A power of two may be multiplied before or after.
template <int Size, rotator Rotator>
void check_rotator_laws(Rotator const& rotator = {})
{
  static_assert(Rotator::rotation_size == 1 || Rotator::rotation_size == Size);
  rotation_key const key{.step = 0x123456789abcdef0, .chunk = 5};
  constexpr double gain = detail::square_gain<Rotator>;
  auto const forward    = [&](auto const& g, auto& x, auto& scratch) {
    rotator.forward(g, x, scratch, key);
    return 0.0f;
  };
  auto const backward = [&](auto const& g, auto& x, auto& scratch) {
    rotator.backward(g, x, scratch, key);
    return 0.0f;
  };
  std::vector<float> const in   = make_chunk(Size, 3);
  std::vector<float> const to   = on_host<Size>(in, forward).values;
  std::vector<float> const back = on_host<Size>(to, backward).values;

  SUBCASE("groups of all sizes compute the same bits")
  {
    check_groups<Size>(in, forward);
    check_groups<Size>(to, backward);
  }

  SUBCASE("forward keeps the norm, and backward undoes forward")
  {
    // A product with a matrix whose rows have the length 1 adds Size products, of which each is rounded to 2^-24: at most
    // Size^1.5 2^-24 of the norm is lost, and twice that there and back. Butterflies lose less.
    double const allowed = 2 * std::pow(Size, 1.5) * 0x1p-24;
    double before = 0, after = 0, lost = 0;
    for (std::size_t i = 0; i < Size; ++i) {
      double const x = static_cast<double>(in[i]);
      before += x * x;
      after += static_cast<double>(to[i]) * static_cast<double>(to[i]) / gain;
      lost += std::pow(static_cast<double>(back[i]) / gain - x, 2);
    }
    CHECK(std::abs(std::sqrt(after / before) - 1) < allowed);
    CHECK(std::sqrt(lost / before) < allowed);
  }

  SUBCASE("zeros stay zeros")
  {
    std::vector<float> const zeros(Size);
    for (float const v : on_host<Size>(zeros, forward).values) { REQUIRE(v == 0); }
    for (float const v : on_host<Size>(zeros, backward).values) { REQUIRE(v == 0); }
  }

  SUBCASE("a power of two passes through")
  {
    std::vector<float> larger = in;
    for (float& v : larger) { v *= 16; }
    std::vector<float> expected = to;
    for (float& v : expected) { v *= 16; }
    CHECK(on_host<Size>(larger, forward).values == expected);
  }
}

}  // namespace tersum::tests
