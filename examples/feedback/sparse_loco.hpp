// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! SparseLoCo (Sarfi et al., 2025): ranks make steps of their own and send the largest 64 of each 4096 residuals, in 2 bits and a place.
//! e = beta e + what weights moved by, c = Q(largest of each chunk of e), e = e - c, x = x - rate * mean of c.
//! Q keeps the sign, and the mean magnitude of the larger half or of the smaller one.

#pragma once

#include <tersum/tersum.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

struct sparse_loco_message {  // of a chunk
  float level[2];
  std::uint16_t word[64];  // place in the chunk << 2 | half << 1 | sign
};

//! @param local     Weights after the rank's own steps, whole chunks; then the new ones, equal on all ranks.
//! @param shared    Weights that all ranks had begun with; then the new ones.
//! @param kept      e, zeros at first.
//! @param messages  One for each chunk of each rank.
[[nodiscard]] tersum::status sparse_loco_step(auto const& over,
                                              float beta,
                                              float rate,
                                              std::span<float> local,
                                              std::span<float> shared,
                                              std::span<float> kept,
                                              std::span<sparse_loco_message> messages)
{
  std::size_t const chunks = local.size() / 4096, mine = static_cast<std::size_t>(over.rank());
  for (std::size_t i = 0; i < local.size(); ++i) { local[i] = shared[i] - local[i]; }
  auto s = add_momentum(tersum::cpu_executor{}, tersum::heavy_ball{beta}, local, kept, kept, local);
  std::vector<std::size_t> order(4096);
  for (std::size_t c = 0; s.ok() && c < chunks; ++c) {
    auto& [level, word] = messages[mine * chunks + c] = {};
    auto const e                                      = kept.subspan(c * 4096, 4096);
    std::iota(order.begin(), order.end(), std::size_t{0});
    auto const larger = [e](auto a, auto b) { return std::abs(e[a]) > std::abs(e[b]); };
    std::partial_sort(order.begin(), order.begin() + 64, order.end(), larger);
    for (std::size_t k = 0; k < 64; ++k) { level[k / 32] += std::abs(e[order[k]]) / 32; }
    for (std::size_t k = 0; k < 64; ++k) {
      word[k] = static_cast<std::uint16_t>(order[k] << 2 | k / 32 << 1 | std::signbit(e[order[k]]));
      e[order[k]] -= std::copysign(level[k / 32], e[order[k]]);
    }
  }
  auto* const bytes = std::as_writable_bytes(messages).data();
  if (s.ok()) { s = over.all_gather(bytes, {messages.size(), sizeof messages[0], over.size()}); }
  for (std::size_t k = 0; s.ok() && k < messages.size(); ++k) {
    for (std::uint16_t const word : messages[k].word) {
      float const level = messages[k].level[word >> 1 & 1] * rate / static_cast<float>(over.size());
      shared[k % chunks * 4096 + (word >> 2 & 4095)] -= word % 2 != 0 ? -level : level;
    }
  }
  std::copy(shared.begin(), shared.end(), local.begin());
  return s;
}
