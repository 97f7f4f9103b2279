// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer of your own sends values below half a step as zero: on a sparse gradient this lowers the error of every step, at the
//! price of a bias, which an average over the steps shows.

#include "support/aligned_bytes.hpp"
#include "your_own/dead_zone_quantizer.hpp"

#include <tersum/tersum.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

// Any quantizer in a codec; no rotation, which would spread the few large coordinates over all others.
template <tersum::quantizer Quantizer>
using sparse_codec = tersum::codec<tersum::fixed_chunks<256>,
                                   tersum::no_rotation,
                                   tersum::summed_codes<tersum::absmax_range<tersum::no_headroom>,
                                                        Quantizer,
                                                        tersum::widening_sum<4, 8>>,
                                   tersum::in_wire>;

template <class Codec>
int run(char const* name, Codec const& codec, std::vector<float> const& gradient)
{
  constexpr int steps = 50;
  auto const plan     = codec.plan({.coordinates = gradient.size()}, {.size = 1, .rank = 0});
  support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
  tersum::cpu_executor const exec{.threads = 1};
  auto outcome = initialize(exec, plan, state, 7);

  auto const error_of = [&](auto const& estimate, double divisor) {
    double error = 0, square = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      auto const exact = static_cast<double>(gradient[i]);
      error += std::pow(static_cast<double>(estimate[i]) / divisor - exact, 2);
      square += exact * exact;
    }
    return error / square;
  };
  std::vector<float> estimate;
  std::vector<double> sum(gradient.size());
  for (int step = 0; step < steps && outcome.ok(); ++step) {
    estimate = gradient;
    // One rank sees its own quantizer alone: its sum is what it sent.
    outcome = all_reduce_mean(exec, plan, estimate, state, workspace, [](auto) {});
    for (std::size_t i = 0; i < sum.size(); ++i) { sum[i] += static_cast<double>(estimate[i]); }
  }
  if (!outcome.ok()) { return std::fprintf(stderr, "%s\n", outcome.message.data()), 1; }
  auto const zeros = std::count(estimate.begin(), estimate.end(), 0.0f);
  std::printf("%-20s  zeros %5.1f %%  error of a step %.5f, of the average of %d steps %.5f\n",
              name,
              100.0 * static_cast<double>(zeros) / static_cast<double>(gradient.size()),
              error_of(estimate, 1),
              steps,
              error_of(sum, steps));
  return 0;
}

int main()
{
  std::vector<float> gradient(1 << 16);
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  for (float& g : gradient) { g = normal(random) * (random() % 16 == 0 ? 1.0f : 0.05f); }
  return run("stochastic_quantizer", sparse_codec<tersum::stochastic_quantizer<4>>{}, gradient) +
         run("dead_zone_quantizer", sparse_codec<dead_zone_quantizer<4>>{}, gradient);
}
