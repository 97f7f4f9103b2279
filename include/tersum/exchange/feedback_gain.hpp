// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the gain of feedback lies.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/plan.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief The gain by which an exchange multiplies what was kept, within a state: of `decayed_feedback`, `averaged_feedback`, and
//! yours with a `kept_weight`.
//!
//! `initialize` makes it 1, and it stays what it is until it is written again: between the last stage of one exchange and the
//! first of the next one, in the order of the executor's stream. Finite and not negative. Ranks may differ in it, since what
//! they keep is their own. Costs nothing.
//! @param plan   Of this rank.
//! @param state  plan.state_bytes() bytes of the executor's memory, aligned to 16.
//! @return One float of the executor's memory.
template <class Codec>
requires(weighs_kept<Codec>)
  [[nodiscard]] std::span<float, 1> feedback_gain(plan<Codec> const& plan,
                                                  std::span<std::byte> state) noexcept
{
  return std::span<float, 1>{reinterpret_cast<float*>(state.data() + plan.offset("gain")), 1};
}

}  // namespace tersum::inline v0
