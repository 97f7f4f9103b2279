// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is coded is the difference to what all ranks hold already, which is feedback without a residual.

#pragma once

#include <tersum/concepts.hpp>

namespace tersum::inline v0 {

//! @brief For `publish`: codes are of values - held, and what they decode to is added to `held` on every rank.
//!
//! The owner keeps its exact values, so what a code loses is part of the next difference: held' - values is minus what the
//! code of values - held lost. A residual besides would count it twice, so there is none, and nothing is kept in the state.
//! Source: SDP4Bit (NeurIPS'24), which sends the differences of weights in 4 bits.
struct difference_feedback {
  static constexpr bool enabled           = false;
  static constexpr bool codes_differences = true;
  constexpr description describe() const { return {"difference_feedback"}; }
};

static_assert(feedback<difference_feedback>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
