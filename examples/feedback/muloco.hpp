// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! MuLoCo (Thérien et al., 2025): the outer step of local training. Ranks make steps of their own, with Muon, and send in 2 bits by
//! how much their weights moved. e = beta e + delta, psi = mean of C(e), e = e - C(e); u = mu u + psi, x = x - rate (psi + mu u).

#pragma once

#include <tersum/tersum.hpp>

#include <cstddef>
#include <span>

using muloco_codec = tersum::gathered_codec<tersum::fixed_chunks<256>,
                                            tersum::partial_hadamard<256>,
                                            tersum::lloyd_max<2>,
                                            tersum::decayed_feedback>;

//! @param local     Weights after the rank's own steps; then the new ones, equal on all ranks.
//! @param shared    Weights that all ranks had begun with; then the new ones.
//! @param velocity  u, zeros at first, equal on all ranks.
//! @param moved     Scratch memory.
template <class Reduce>
[[nodiscard]] tersum::status muloco_step(tersum::plan<muloco_codec> const& plan,
                                         std::span<float> local,
                                         std::span<float> shared,
                                         std::span<float> velocity,
                                         std::span<float> moved,
                                         float mu,
                                         float rate,
                                         std::span<std::byte> state,
                                         std::span<std::byte> workspace,
                                         Reduce const& reduce)
{
  for (std::size_t i = 0; i < moved.size(); ++i) { moved[i] = shared[i] - local[i]; }
  auto const s = all_reduce_mean(tersum::cpu_executor{}, plan, moved, state, workspace, reduce);
  for (std::size_t i = 0; s.ok() && i < moved.size(); ++i) {
    velocity[i] = mu * velocity[i] + moved[i];
    shared[i]   = shared[i] - rate * (moved[i] + mu * velocity[i]);
    local[i]    = shared[i];
  }
  return s;
}
