// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the feedback role, for all feedback of the library and of its users.

#pragma once

#include "on_groups.hpp"

#include <tersum/block/group.hpp>
#include <tersum/concepts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace tersum::tests {

//! @brief Checks every law of the role.
//!
//! - The first step, when nothing was kept, encodes the gradient as it is.
//! - What loses nothing, and has kept nothing, keeps nothing.
//! - Finite numbers give finite numbers.
//! - Where nothing gets through for a hundred steps, what is kept stays below the sum of the gradients.
//! - One that says `adds_lost` does that and no more.
//! - The weight of what is kept is finite and not negative, and with a gain of 1 nothing grows; it is proportional to the gain.
template <feedback Feedback>
void check_feedback_laws([[maybe_unused]] Feedback const& feedback = {})
{
  if constexpr (Feedback::enabled) {
    host_group const math;
    auto const some = make_chunk(256, 7);
    auto const more = make_chunk(256, 8);
    for (std::size_t i = 0; i < some.size(); ++i) {
      CHECK(feedback.before(math, some[i], 0.0f) == some[i]);
      CHECK(feedback.after(math, some[i], 0.0f, 0.0f) == 0);
      CHECK(std::isfinite(feedback.before(math, some[i], more[i])));
      CHECK(std::isfinite(feedback.after(math, some[i], more[i], some[i])));
      if constexpr (has_adds_lost<Feedback>) {
        CHECK(feedback.before(math, some[i], more[i]) == some[i] + more[i]);
        CHECK(feedback.after(math, some[i], more[i], some[i]) == more[i]);
      }
    }
    if constexpr (has_kept_weight<Feedback>) {
      for (std::uint64_t step = 0; step < 100; ++step) {
        CHECK(feedback.kept_weight(step, 1.0f) >= 0);
        CHECK(feedback.kept_weight(step, 1.0f) <= 1);
        CHECK(feedback.kept_weight(step, 2.0f) == 2 * feedback.kept_weight(step, 1.0f));
      }
    }
    float kept = 0;
    for (int step = 1; step <= 100; ++step) {
      float const value = feedback.before(math, 1.0f, kept);
      kept              = feedback.after(math, value, value, kept);
      REQUIRE(kept <= static_cast<float>(step));
      REQUIRE(kept >= 0);
    }
  }
}

}  // namespace tersum::tests
