// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the momentum role, for all momenta of the library and of its users.

#pragma once

#include "on_groups.hpp"

#include <tersum/block/group.hpp>
#include <tersum/feedback/momentum.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>

namespace tersum::tests {

//! @brief Checks every law of the role.
//!
//! - Where all was zero, a gradient of zero gives zero.
//! - Finite numbers give finite numbers; a gradient that is not finite gives a value that is not, so that the codec sees it.
//! - What a gradient has added dies away once gradients are zero.
//! - Momenta of equal gradients stay bounded, and what is encoded has their sign.
template <momentum Momentum>
void check_momentum_laws(Momentum const& rule = {})
{
  host_group const math;
  auto const some = make_chunk(256, 11);
  auto const more = make_chunk(256, 12);
  CHECK(rule.next(math, 0.0f, 0.0f) == 0);
  CHECK(rule.value(math, 0.0f, 0.0f) == 0);
  for (std::size_t i = 0; i < some.size(); ++i) {
    float const next = rule.next(math, some[i], more[i]);
    CHECK(std::isfinite(next));
    CHECK(std::isfinite(rule.value(math, some[i], next)));
  }
  for (float const bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(!std::isfinite(rule.value(math, bad, rule.next(math, bad, 1.0f))));
  }
  for (float const gradient : {1.0f, -1.0f}) {
    float kept = 0, largest = 0;
    for (int step = 0; step < 2000; ++step) {
      kept = rule.next(math, gradient, kept);
      CHECK(rule.value(math, gradient, kept) * gradient > 0);
      if (step == 1000) { largest = std::abs(kept); }
    }
    CHECK(std::abs(kept) <= 1.5f * largest);  // of what grows without end it would be twice as much
    float const at_end = std::abs(kept);
    for (int step = 0; step < 2000; ++step) { kept = rule.next(math, 0.0f, kept); }
    CHECK(std::abs(kept) < at_end / 2);
  }
}

}  // namespace tersum::tests
