// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! CLAN (Zhong et al., 2021): Nesterov's momentum, then codes of both directions with feedback in the unit of the update.
//! Worker: p = g + (rate before / rate) e, e = p - C(p). Server: s = mean of C(p) + (rate before / rate) e', e' = s - C(s).

#pragma once

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <span>

//! Owners of chunks are the servers. C is one bit and a scale.
using clan_codec = tersum::codec<tersum::fixed_chunks<256>,
                                 tersum::partial_hadamard<256>,
                                 tersum::scaled_codes<tersum::lloyd_max<1>>,
                                 tersum::two_shot,
                                 tersum::decayed_feedback>;

//! @param momentum     What the rank keeps besides, zeros at first.
//! @param rate_before  The learning rate of the last step.
template <class Reduce>
[[nodiscard]] tersum::status clan_step(tersum::plan<clan_codec> const& plan,
                                       std::span<float> gradient,
                                       std::span<float> momentum,
                                       float mu,
                                       float rate_before,
                                       float rate,
                                       std::span<std::byte> state,
                                       std::span<std::byte> workspace,
                                       Reduce const& reduce)
{
  tersum::cpu_executor const exec;
  feedback_gain(plan, state)[0] = rate_before / rate;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    float const next = mu * momentum[i] + gradient[i];
    gradient[i] += mu * next;
    if (std::isfinite(gradient[i])) { momentum[i] = next; }
  }
  return all_reduce_mean(exec, plan, gradient, state, workspace, reduce);
}
