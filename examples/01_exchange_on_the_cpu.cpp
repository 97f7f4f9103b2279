// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Four ranks, a thread each, average their gradients at 4 bits a coordinate through an all-reduce that the program brings itself.

#include "support/aligned_bytes.hpp"
#include "support/error_of.hpp"

#include <tersum/tersum.hpp>

#include <barrier>
#include <cstddef>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

int main()
{
  constexpr std::size_t ranks = 4;
  constexpr std::size_t size  = 100'000;
  auto const codec            = tersum::presets::rotated_sat4;

  // All ranks see the same signal, each with noise of its own, as ranks that read different samples do.
  std::vector<std::vector<float>> gradients(ranks, std::vector<float>(size));
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < size; ++i) {
    float const signal = normal(random);
    for (auto& gradient : gradients) { gradient[i] = signal + normal(random); }
  }
  std::barrier everyone{ranks};
  std::vector<void*> arrays(ranks);
  std::vector<tersum::status> outcomes(ranks);
  std::vector<std::vector<float>> estimates;  // of rank 0: one a step

  auto const run_rank = [&](std::size_t rank) {
    // [all_reduce]
    // The transport. Each rank reduces one block of all arrays, then fetches the blocks of the others: as one rank
    // alone decides on a block, all ranks get the same bits even where the order of the sum matters.
    auto const all_reduce = [&, rank](auto wire) {
      auto const op    = wire.op;  // of the codes: a saturating sum
      auto const begin = [&](std::size_t block) { return wire.count * block / ranks; };
      auto const array = [&](std::size_t r) { return static_cast<decltype(wire.data)>(arrays[r]); };
      arrays[rank]     = wire.data;
      everyone.arrive_and_wait();
      for (std::size_t hop = 1; hop < ranks; ++hop) {
        auto const* const other = array((rank + hop) % ranks);
        for (auto i = begin(rank); i < begin(rank + 1); ++i) {
          wire.data[i] = op(wire.data[i], other[i]);
        }
      }
      everyone.arrive_and_wait();
      for (std::size_t hop = 1; hop < ranks; ++hop) {
        std::size_t const owner = (rank + hop) % ranks;
        for (auto i = begin(owner); i < begin(owner + 1); ++i) { wire.data[i] = array(owner)[i]; }
      }
      everyone.arrive_and_wait();  // nobody goes on to overwrite what another still reads
    };
    // [all_reduce]

    // The plan knows all sizes, the memory is the caller's.
    auto const plan =
      codec.plan({.coordinates = size}, {.size = int{ranks}, .rank = static_cast<int>(rank)});
    support::aligned_bytes state{plan.state_bytes()};
    support::aligned_bytes workspace{plan.workspace_bytes()};

    // What is wrong with the arguments is wrong on all ranks, so that none waits at the barrier in vain.
    tersum::cpu_executor const exec{.threads = 1};
    outcomes[rank] = initialize(exec, plan, state, 42);
    for (int step = 0; step < 5 && outcomes[rank].ok(); ++step) {
      std::vector<float> gradient = gradients[rank];
      outcomes[rank] = all_reduce_mean(exec, plan, gradient, state, workspace, all_reduce);
      if (rank == 0) { estimates.push_back(gradient); }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) { threads.emplace_back(run_rank, rank); }
  threads.clear();  // joins them
  for (auto const& outcome : outcomes) {
    if (!outcome.ok()) { return std::fprintf(stderr, "%s\n", outcome.message.data()), 1; }
  }
  std::printf("%.3f bits a coordinate; |mean - estimate|^2 / |mean|^2 of each step:\n",
              codec.plan({.coordinates = size}, {.size = ranks}).bits_per_coordinate());
  auto const mean = support::mean_of(gradients);
  for (auto const& estimate : estimates) {
    std::printf("%.4f\n", support::error_of(estimate, mean));
  }
}
