// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Four ranks, a thread each, get their shards of the mean of a flat parameter's gradient, as FSDP and ZeRO need it:
//! bfloat16 gradients, 4 bits a coordinate on the wire, means in float. Each then makes a step with its shard of the weights,
//! and all ranks get the weights of all shards, of which 4 bits a coordinate travel, too.

#include <tersum/interop/reduce_over.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <thread>
#include <vector>

int main()
{
  constexpr int ranks              = 4;
  constexpr std::uint64_t size     = 100'000;
  std::uint64_t const boundaries[] = {0, 25'000, 50'000, 75'000, size};  // any ascending ones
  tersum::loopback_group group{ranks};
  std::vector<tersum::status> outcomes(ranks);
  double errors[ranks] = {}, apart[ranks] = {};

  auto const gradient_of = [](int rank) {
    std::mt19937 random(static_cast<unsigned>(rank));
    std::normal_distribution<float> normal;
    std::vector<tersum::bfloat16> gradient(size);
    for (auto& value : gradient) { value = tersum::to_bfloat16(normal(random)); }
    return gradient;
  };
  auto const run_rank = [&](int rank) {
    tersum::loopback_transport const over{group,
                                          rank};  // or an mpi_transport, a gloo_transport ...
    tersum::cpu_executor const exec;
    auto const gradient = gradient_of(rank);
    // [reduce_scatter]
    auto const plan = tersum::presets::sharded_4.plan(
      {.coordinates = size}, {.size = ranks, .rank = rank}, boundaries);
    std::vector<tersum::word4> kept(plan.state_bytes() / 16 + 1);
    std::vector<tersum::word4> work(plan.workspace_bytes() / 16 + 1);
    auto const state     = std::as_writable_bytes(std::span{kept});
    auto const workspace = std::as_writable_bytes(std::span{work});
    std::vector<float> shard(plan.shard_size());

    tersum::status outcome = initialize(exec, plan, state, 42);
    if (outcome.ok()) {
      outcome =
        reduce_scatter_mean(exec, plan, gradient, shard, state, workspace, reduce_over(over, exec));
    }
    // [reduce_scatter]
    // [all_gather]
    auto const gather = tersum::presets::values<4, tersum::difference_feedback>{}.plan(
      {.coordinates = size}, {.size = ranks, .rank = rank}, boundaries);
    std::vector<tersum::word4> gather_kept(gather.state_bytes() / 16 + 1);
    std::vector<tersum::word4> gather_work(gather.workspace_bytes() / 16 + 1);
    auto const gather_state     = std::as_writable_bytes(std::span{gather_kept});
    auto const gather_workspace = std::as_writable_bytes(std::span{gather_work});
    std::vector<tersum::bfloat16> weights(size, tersum::to_bfloat16(1.0f));  // what all ranks hold
    std::vector<float> own(gather.shard_size(), 1.0f);                       // exact, of this shard

    if (outcome.ok()) { outcome = initialize(exec, gather, gather_state, 43); }
    for (std::size_t i = 0; i < own.size(); ++i) { own[i] -= 0.1f * shard[i]; }  // the optimizer
    if (outcome.ok()) {
      outcome = all_gather_values(
        exec, gather, own, weights, gather_state, gather_workspace, reduce_over(over, exec));
    }
    // [all_gather]
    outcomes[static_cast<std::size_t>(rank)] = outcome;
    double error = 0, square = 0;
    std::vector<std::vector<tersum::bfloat16>> all;
    for (int other = 0; other < ranks; ++other) { all.push_back(gradient_of(other)); }
    for (std::size_t i = 0; i < shard.size(); ++i) {
      double mean = 0;
      for (auto const& g : all) {
        mean += static_cast<double>(to_float(g[plan.shard_begin(rank) + i])) / ranks;
      }
      double const lost = mean - static_cast<double>(shard[i]);
      error += lost * lost;
      square += mean * mean;
    }
    errors[rank]  = error / square;
    double change = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      float const off  = own[i] - to_float(weights[plan.shard_begin(rank) + i]);
      float const step = own[i] - 1.0f;
      apart[rank] += static_cast<double>(off * off);
      change += static_cast<double>(step * step);
    }
    apart[rank] /= change;
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) { threads.emplace_back(run_rank, rank); }
  threads.clear();  // joins them
  for (int rank = 0; rank < ranks; ++rank) {
    auto const& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (!outcome.ok()) { return std::fprintf(stderr, "%s\n", outcome.message.data()), 1; }
    std::printf(
      "rank %d: |mean - shard|^2 / |mean|^2 = %.4f, of the step in the weights %.4f is left\n",
      rank,
      errors[rank],
      apart[rank]);
  }
}
