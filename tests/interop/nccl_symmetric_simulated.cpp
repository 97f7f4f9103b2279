// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rounds over symmetric memory on a simulated device, on which the kernels of all ranks run at the same time.

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <interop/nccl_conformance.hpp>
#include <interop/simulated/on_all_ranks.hpp>
#include <support/simulator/interleaved.hpp>

using namespace tersum;
using namespace std::chrono_literals;

TEST_CASE("[nccl] rounds over symmetric memory, in whatever order warps of all ranks go")
{
  using turns     = simulator::taking_turns;
  auto const runs = [](int ranks, turns order, std::uint64_t coordinates) {
    CAPTURE(ranks);
    CAPTURE(static_cast<int>(order.next));
    simulator::interleaved_ranks device{ranks, order};
    device.patience = 300s;
    CHECK(tests::on_all_ranks(ranks, true, [&](tests::nccl_rank& on) {
            simulator::interleaved_ranks::member const here{device, on.rank};
            return tests::check_nccl_symmetric(
              on, {.blocks = 2, .coordinates = coordinates, .must_run = true});
          }) == 0);
  };
  runs(1, {}, 3001);
  runs(3, {.next = turns::by::first, .most = 4096}, 3001);
  runs(3, {.next = turns::by::last, .most = 4096}, 3001);
  runs(2, {.next = turns::by::chance, .seed = 1, .most = 200}, 3001);
  runs(9, {.most = 500}, 1001);  // more than load at once
}
