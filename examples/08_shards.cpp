// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Four ranks work as under FSDP and ZeRO: each gets its shard of the mean in 4 bits a coordinate, makes a step with its shard of the
//! weights, and gets the weights of all shards in 4 bits.

#include "support/aligned_bytes.hpp"
#include "support/error_of.hpp"

#include <tersum/interop/reduce_over.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
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
    tersum::loopback_transport const over{group, rank};  // or an mpi_transport, a gloo_transport
    tersum::cpu_executor const exec;
    auto const gradient = gradient_of(rank);
    // [reduce_scatter]
    auto const plan = tersum::presets::sharded_4.plan(
      {.coordinates = size}, {.size = ranks, .rank = rank}, boundaries);
    support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
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
    support::aligned_bytes gather_state{gather.state_bytes()};
    support::aligned_bytes gather_workspace{gather.workspace_bytes()};
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
    std::vector<std::vector<tersum::bfloat16>> all;
    for (int other = 0; other < ranks; ++other) { all.push_back(gradient_of(other)); }
    auto const mean  = support::mean_of(all);
    auto const begin = mean.begin() + static_cast<std::ptrdiff_t>(plan.shard_begin(rank));
    auto const end   = begin + static_cast<std::ptrdiff_t>(shard.size());
    errors[rank]     = support::error_of(shard, std::vector<double>(begin, end));
    std::vector<float> moved, wanted;  // the steps that the weights and the exact weights made
    for (std::size_t i = 0; i < own.size(); ++i) {
      moved.push_back(tersum::to_float(weights[plan.shard_begin(rank) + i]) - 1.0f);
      wanted.push_back(own[i] - 1.0f);
    }
    apart[rank] = support::error_of(moved, wanted);
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) { threads.emplace_back(run_rank, rank); }
  threads.clear();  // joins them
  for (int rank = 0; rank < ranks; ++rank) {
    auto const& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (!outcome.ok()) { return std::fprintf(stderr, "%s\n", outcome.message.data()), 1; }
    std::printf(
      "rank %d: error of the mean %.4f, of the step %.4f\n", rank, errors[rank], apart[rank]);
  }
}
