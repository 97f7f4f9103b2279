// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! DGC (Lin et al., 2018): ranks send the largest coordinates of momenta that they add up until they travel.
//! u = mu u + g, v = v + u, the largest of v are sent; where they are sent u = 0 and v = 0.

#pragma once

#include <tersum/tersum.hpp>
#include <tersum_baselines/top_coordinates.hpp>

#include <cstddef>
#include <span>

using dgc_codec = tersum::top_coordinates_codec<tersum::cleared_feedback>;

//! @param gradient  The rank's own, without momentum; then the mean of what was sent.
//! @param momentum  u, zeros at first. v is what the state keeps.
template <class Executor, class Reduce>
[[nodiscard]] tersum::status dgc_step(Executor const& exec,
                                      tersum::plan<dgc_codec> const& plan,
                                      std::span<float> gradient,
                                      std::span<float> momentum,
                                      float mu,
                                      std::span<std::byte> state,
                                      std::span<std::byte> workspace,
                                      Reduce const& reduce)
{
  auto s = add_momentum(exec, tersum::heavy_ball{mu}, gradient, momentum, momentum, gradient);
  if (s.ok()) { s = all_reduce_mean(exec, plan, gradient, state, workspace, reduce); }
  return s.ok() ? mask_momentum(exec, residuals_of(plan, state), momentum) : s;
}
