// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! MuLoCo (Thérien et al., 2025): the outer step of local training. Ranks make steps of their own, with Muon, and send in 2 bits by
//! how much their weights moved. e = beta e + delta, psi = mean of C(e), e = e - C(e); u = mu u + psi, x = x - rate (psi + mu u).

#pragma once

#include <tersum/tersum.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

using muloco_codec = tersum::codec<tersum::fixed_chunks<256>,
                                   tersum::partial_hadamard<256>,
                                   tersum::scaled_codes<tersum::lloyd_max<2>>,
                                   tersum::gather,
                                   tersum::decayed_feedback>;

//! @param local     Weights after the rank's own steps; then the new ones, equal on all ranks.
//! @param shared    Weights that all ranks had begun with; then the new ones.
//! @param velocity  u, zeros at first, equal on all ranks.
template <class Reduce>
[[nodiscard]] tersum::status muloco_step(tersum::plan<muloco_codec> const& plan,
                                         std::span<float> local,
                                         std::span<float> shared,
                                         std::span<float> velocity,
                                         float mu,
                                         float rate,
                                         std::span<std::byte> state,
                                         std::span<std::byte> workspace,
                                         Reduce const& reduce)
{
  tersum::cpu_executor const exec;
  for (std::size_t i = 0; i < local.size(); ++i) { local[i] = shared[i] - local[i]; }
  auto s = all_reduce_mean(exec, plan, local, state, workspace, reduce);
  if (s.ok()) { s = add_momentum(exec, tersum::nesterov{mu}, local, velocity, velocity, local); }
  for (std::size_t i = 0; s.ok() && i < local.size(); ++i) { shared[i] -= rate * local[i]; }
  std::copy(shared.begin(), shared.end(), local.begin());
  return s;
}
