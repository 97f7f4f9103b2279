// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks that are threads, each with threads of its own, under the thread sanitizer: `tersum.fuzz.threads [race]`. With
//! `race` threads of OpenMP write what others read, and the sanitizer must say so.

#include <tersum/interop/reduce_over.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int ranks = 3;
constexpr int steps = 3;

//! Whether all ranks get the same means.
template <class Codec>
bool exchange(Codec const& codec)
{
  constexpr std::size_t coordinates = 20011;
  tersum::loopback_group group{ranks};
  std::vector<std::vector<float>> means(ranks);
  std::atomic<bool> fine = true;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      tersum::loopback_transport const transport{group, rank};
      tersum::cpu_executor const exec{.threads = 3};
      auto const plan = codec.plan({.coordinates = coordinates}, {.size = ranks, .rank = rank});
      std::vector<std::byte> state(plan.state_bytes()), workspace(plan.workspace_bytes());
      std::vector<std::byte> scratch(scratch_bytes(plan));
      if (!agree_on(transport, plan, 7).ok() || !initialize(exec, plan, state, 7).ok()) {
        fine = false;
      }
      for (int step = 0; step < steps; ++step) {
        std::vector<float> gradient(coordinates);
        for (std::size_t i = 0; i < coordinates; ++i) {
          gradient[i] =
            static_cast<float>((i * 7919 + static_cast<std::size_t>(rank * 31 + step)) % 1009) -
            504;
        }
        if (!all_reduce_mean(
               exec, plan, gradient, state, workspace, reduce_over(transport, exec, scratch))
               .ok()) {
          fine = false;
        }
        auto& mine = means[static_cast<std::size_t>(rank)];
        mine.insert(mine.end(), gradient.begin(), gradient.end());
      }
    });
  }
  for (std::thread& t : threads) { t.join(); }
  for (auto const& of_rank : means) {
    fine =
      fine && std::memcmp(of_rank.data(), means[0].data(), of_rank.size() * sizeof(float)) == 0;
  }
  return fine;
}

//! Threads of OpenMP of which one writes what another one reads.
bool race()
{
  std::vector<int> words(1000);
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 999; ++i) {
    words[static_cast<std::size_t>(i + 1)] = words[static_cast<std::size_t>(i)] + 1;
  }
  return words[999] >= 0;
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc > 1 && std::string_view{argv[1]} == "race") { return race() ? 0 : 1; }
  using namespace tersum::presets;
  bool const fine = exchange(fp16) && exchange(rotated_sat4_ef) && exchange(two_shot_2_ef);
  std::printf(
    "%d ranks of 3 threads, %d steps: %s\n", ranks, steps, fine ? "equal bits" : "FAILED");
  return fine ? 0 : 1;
}
