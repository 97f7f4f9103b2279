// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A collective of your own takes every kind of round of an all-reduce: put the three calls of your library in the place of those of
//! `team`.

#include "support/aligned_bytes.hpp"
#include "support/error_of.hpp"
#include "support/thread_team.hpp"

#include <tersum/tersum.hpp>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

constexpr int ranks        = 3;
constexpr std::size_t size = 100'000;

template <class Codec>
bool average(support::thread_team& team, std::size_t rank, char const* name, Codec const& codec)
{
  // [reduce]
  auto const reduce = [&](auto const& round) {
    if constexpr (requires { round.op; }) {  // wire: an array that is reduced
      using op = decltype(round.op);
      if constexpr (tersum::has_combine_at<
                      op>) {  // lanes of several widths: one operation after the other
        round.op.for_each_part(round.count, [&](auto lanes, std::size_t begin, std::size_t end) {
          team.all_reduce(rank, round.data + begin, end - begin, lanes);
        });
      } else {
        team.all_reduce(rank, round.data, round.count, round.op);
      }
    } else if constexpr (requires { round.sent; }) {  // scatter_wire: parts that are exchanged
      team.all_to_all(rank, round.sent, round.received, round.bytes());
    } else {  // gather_wire: parts that are gathered
      team.all_gather(rank, round.gathered, round.bytes());
    }
  };
  // [reduce]

  auto const plan =
    codec.plan({.coordinates = size}, {.size = ranks, .rank = static_cast<int>(rank)});
  support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
  std::vector<float> gradient(size, 1.0f + static_cast<float>(rank));  // the mean of 1, 2, 3 is 2
  tersum::cpu_executor const exec{.threads = 1};
  tersum::status outcome = initialize(exec, plan, state, 42);
  if (outcome.ok()) { outcome = all_reduce_mean(exec, plan, gradient, state, workspace, reduce); }
  double const error = support::error_of(gradient, std::vector<float>(size, 2.0f));
  if (rank == 0) { std::printf("%s: error %.4f %s\n", name, error, outcome.message.data()); }
  return outcome.ok() && error < 0.1;
}

int main()
{
  support::thread_team team{ranks};
  std::atomic<int> bad = 0;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      if (!average(team, rank, "lanes", tersum::presets::allocated_sat_4)) { ++bad; }
      if (!average(team, rank, "two shots", tersum::presets::two_shot_4)) { ++bad; }
    });
  }
  threads.clear();  // joins them
  return bad == 0 ? 0 : 1;
}
