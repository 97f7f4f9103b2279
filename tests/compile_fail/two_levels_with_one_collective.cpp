// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: a two_level_codec needs two collectives: give all_reduce_mean a two_levels

#include <tersum/exchange/two_levels.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>

#include <vector>

tersum::status exchange(std::vector<float>& gradient)
{
  tersum::two_level_codec const codec{tersum::presets::fp16};
  auto const plan = codec.plan({.coordinates = gradient.size()}, {.size = 4, .rank = 0}, 2);
  return all_reduce_mean(tersum::cpu_executor{}, plan, gradient, {}, {}, [](auto const&) {});
}
