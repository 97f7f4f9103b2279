// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the metric role, for all metrics of the library and of its users.

#pragma once

#include "on_groups.hpp"

#include <tersum/block/group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

namespace tersum::tests {

//! @brief Checks every law of the role.
//!
//! - `least` is above 0, not above the largest scale, and grows with it.
//! - `update` of finite means is finite and not negative, and depends on the size of a mean alone.
//! - It grows with that size, and does not depend on the unit in which scales are: exactly, for powers of two.
//! - Scales that are far too large for the means that follow shrink, and those that are far too small grow, in 10,000 steps.
template <metric Metric>
void check_metric_laws([[maybe_unused]] Metric const& metric = {})
{
  if constexpr (Metric::scaled) {
    host_group const math;
    auto const some = make_chunk(256, 9);
    float before    = 0;
    for (int exponent = -90; exponent < 90; ++exponent) {
      float const largest = std::ldexp(1.0f, exponent);
      float const least   = metric.least(math, largest);
      CHECK(least > 0);
      CHECK(least <= largest);
      CHECK(least >= before);
      before = least;
    }
    if constexpr (has_update<Metric>) {
      for (std::size_t i = 0; i < some.size(); ++i) {
        auto const steps  = static_cast<float>(i);
        float const value = std::abs(some[i]);
        float const next  = metric.update(math, value, 0.5f, steps);
        CHECK(std::isfinite(next));
        CHECK(next >= 0);
        CHECK(metric.update(math, -value, 0.5f, steps) == next);
        CHECK(metric.update(math, 2 * value, 0.5f, steps) >= next);
        CHECK(metric.update(math, value, 0x1p-40f, steps) == next * 0x1p-39f);
      }
      for (float const first : {100.0f, 0.01f}) {
        float scale = first;
        for (int step = 0; step < 10000; ++step) {
          scale = metric.update(math, 1.0f / scale, scale, static_cast<float>(step));
        }
        CHECK(scale > 0.5f);
        CHECK(scale < 2.0f);
      }
    }
  }
}

}  // namespace tersum::tests
