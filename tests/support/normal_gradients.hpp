// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradients to compress: normal coordinates, different for every rank.

#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace tersum::tests {

using gradients = std::vector<std::vector<float>>;

//! @brief One gradient a rank, all coordinates independent, of mean 0 and standard deviation `scale`.
template <class Engine = std::mt19937>
[[nodiscard]] gradients normal_gradients(int world,
                                         std::size_t coordinates,
                                         unsigned seed,
                                         float scale = 1.0f)
{
  Engine random(seed);
  std::normal_distribution<float> normal;
  gradients out(static_cast<std::size_t>(world), std::vector<float>(coordinates));
  for (auto& gradient : out) {
    for (float& value : gradient) { value = normal(random) * scale; }
  }
  return out;
}

}  // namespace tersum::tests
