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
//! - Of a factored one: a line that has its mean square keeps it, others come nearer to it, and nothing overshoots; the share of a
//!   column is 1 where column and tensor agree, and grows with the column.
//! - Scales that are far too large for the means that follow shrink, and scales that are far too small grow, within ten
//!   thousand steps.
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
    if constexpr (has_factored<Metric>) {
      for (std::size_t i = 1; i < some.size(); ++i) {
        float const root    = std::abs(some[i]);
        double const square = static_cast<double>(root) * static_cast<double>(root);
        CHECK(metric.share(math, root, root) == 1);
        CHECK(metric.share(math, 4 * root, root / 2) == 8);
        for (std::uint64_t const steps :
             {std::uint64_t{0}, std::uint64_t{i}, std::uint64_t{1} << 40}) {
          CHECK(metric.follow(square, root, i, steps) == root);
          float const up   = metric.follow(square, root / 4, i, steps);
          float const down = metric.follow(square, root * 4, i, steps);
          CHECK(up >= root / 4);
          CHECK(up <= root);
          CHECK(down >= root);
          CHECK(down <= root * 4);
          CHECK(metric.follow(square * 0x1p-80, root * 0x1p-42f, i, steps) == up * 0x1p-40f);
        }
        float line = 100 * root;
        for (std::uint64_t step = 0; step < 10000; ++step) {
          line = metric.follow(square, line, i, step);
        }
        CHECK(line == doctest::Approx(root).epsilon(0.01));
      }
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
