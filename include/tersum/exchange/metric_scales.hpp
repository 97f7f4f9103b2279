// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the scales of a metric lie.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/plan.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief The scale of each coordinate, in units of the gradient, within a state: a codec in a metric divides by it before it
//! encodes, and multiplies by it after it has decoded.
//!
//! Under `given_diagonal` write them, the same bits on every rank, after `initialize`, which makes them zeros, and before `measure`
//! of a step: of values before `encode_shard`; finite and not negative. Under `kept_diagonal` the exchange does; write them where a
//! training goes on from an optimizer's state. Those of coordinates that bypass the codec are not used. Costs nothing.
//! @param plan   Of this rank.
//! @param state  plan.state_bytes() bytes of the executor's memory, aligned to 16.
//! @return plan.coordinates() floats of the executor's memory, or bfloat16s where the metric keeps these.
template <class Codec>
requires in_metric<Codec>
[[nodiscard]] std::span<metric_scale<Codec>> metric_scales(plan<Codec> const& plan,
                                                           std::span<std::byte> state) noexcept
{
  return {reinterpret_cast<metric_scale<Codec>*>(state.data() + plan.offset("scales")),
          plan.coordinates()};
}

}  // namespace tersum::inline v0
