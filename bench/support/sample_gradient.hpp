// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Values to compress.

#pragma once

#include <tersum/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace tersum_bench {

//! @brief Normal deviates, always the same; gradients repeat them. Every 64 have a scale of their own, within eight
//! octaves, so that there is something to choose.
template <class Element>
[[nodiscard]] std::vector<Element> const& gradient_period()
{
  static auto const period = [] {
    std::mt19937_64 engine{1};
    std::normal_distribution<float> normal{0.0f, 0.01f};
    std::vector<Element> values(std::size_t{1} << 20);
    std::uniform_int_distribution<int> octave{-4, 3};
    int scale = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 64 == 0) { scale = octave(engine); }
      values[i] = tersum::from_float<Element>(std::ldexp(normal(engine), scale));
    }
    return values;
  }();
  return period;
}

template <class Element>
void fill_gradient(std::span<Element> to)
{
  auto const& period = gradient_period<Element>();
  for (std::size_t i = 0; i < to.size(); i += period.size()) {
    std::copy_n(period.begin(), std::min(period.size(), to.size() - i), to.data() + i);
  }
}

}  // namespace tersum_bench
