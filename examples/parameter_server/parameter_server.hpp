// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! CLAN (Zhong et al., 2021) with a parameter server: codes of one bit in both directions, with feedback at the workers and at the server.
//! What is the same over every kind of messages.

#pragma once

#include <tersum/tersum.hpp>
#include <tersum_server/parameter_server.hpp>
#include <tersum_server/parameter_worker.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

// [plan]
//! C is a bit for each coordinate and a scale for 256 of them; what it loses is kept, in the unit of the update.
using clan = tersum::codec<tersum::fixed_chunks<256>,
                           tersum::partial_hadamard<256>,
                           tersum::scaled_codes<tersum::lloyd_max<1>>,
                           tersum::publish,
                           tersum::decayed_feedback>;

//! Workers and server make the same plan. The second tensor is below 65,536 bytes, so it travels as floats.
inline std::vector<std::uint64_t> const tensor_sizes{200000, 3000};

[[nodiscard]] inline tersum::served_plan<clan> clan_plan(int workers)
{
  return {
    clan{}, clan{}, tensor_sizes, {.workers = workers, .seed = 42, .most_coordinates = 65536}};
}
// [plan]

//! Rank 0. Returns whether all went well.
template <class Messages>
[[nodiscard]] bool serve(Messages& over)
{
  // [serve]
  tersum::parameter_server<clan> server{clan_plan(over.size() - 1), {.threads = 2}};
  tersum::status const outcome = server.serve(over);  // until all workers have left
  // [serve]
  std::uint64_t missing = 0;
  for (int k = 0; k < over.size() - 1; ++k) { missing += server.pushes(k).missing; }
  std::printf("server: %llu means, %llu pushes missing, %llu messages refused %s\n",
              static_cast<unsigned long long>(server.counts().steps),
              static_cast<unsigned long long>(missing),
              static_cast<unsigned long long>(server.counts().refused),
              outcome.message.data());
  return outcome.ok() && server.counts().refused == 0;
}

//! Ranks from 1. The loss is |w - 1|^2 / 2 for each worker, and of each gradient a part is noise. Returns whether the weights arrive.
template <class Messages>
[[nodiscard]] bool work(Messages& over, int steps)
{
  int const number = over.rank() - 1;
  // [work]
  tersum::parameter_worker worker{
    clan_plan(over.size() - 1), over, {.number = number, .threads = 2}};
  // [work]
  std::vector<std::vector<float>> weights, gradients;
  for (std::uint64_t const size : tensor_sizes) {
    weights.emplace_back(size);
    gradients.emplace_back(size);
  }
  tersum::status outcome;
  float rate_before = 0.2f;
  for (int step = 0; step < steps && outcome.ok(); ++step) {
    float const rate = 0.2f / (1.0f + 0.05f * static_cast<float>(step));
    // [push]
    for (std::size_t t = 0; t < gradients.size() && outcome.ok(); ++t) {
      for (std::size_t i = 0; i < gradients[t].size(); ++i) {
        auto const noise =
          static_cast<float>((i * 7 + static_cast<std::size_t>(step + 3 * number) * 13) % 11) -
          5.0f;
        gradients[t][i] = weights[t][i] - 1.0f + 0.1f * noise;
      }
      outcome = worker.push(t, gradients[t], rate_before / rate);  // as soon as a gradient is there
    }
    if (outcome.ok()) { outcome = worker.pull_all(); }  // the gradients become the means
    // [push]
    rate_before = rate;
    for (std::size_t t = 0; t < gradients.size() && outcome.ok(); ++t) {
      for (std::size_t i = 0; i < weights[t].size(); ++i) {
        weights[t][i] -= rate * gradients[t][i];
      }
    }
  }
  double error = 0;
  for (float const w : weights[0]) { error += (w - 1.0) * (w - 1.0); }
  error = std::sqrt(error / static_cast<double>(weights[0].size()));
  if (tersum::status const s = worker.leave(); outcome.ok()) { outcome = s; }
  std::printf("worker %d: off by %.3f %s\n", number, error, outcome.message.data());
  return outcome.ok() && error < 0.25;
}
