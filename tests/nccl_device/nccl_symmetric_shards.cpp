// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of shards over symmetric memory, on a simulated device, on which the kernels of all ranks run at the same time.

#include <doctest/doctest.h>

#include <interop/nccl_conformance.hpp>
#include <interop/simulated/on_interleaved_ranks.hpp>

using namespace tersum;
using turns = simulator::taking_turns;

TEST_CASE("[nccl] shards over symmetric memory, in whatever order warps of all ranks go")
{
  auto const runs = [](int ranks, turns order) {
    CAPTURE(ranks);
    CAPTURE(static_cast<int>(order.next));
    CHECK(tests::on_interleaved_ranks(ranks, order, [](tests::nccl_rank& on) {
            return tests::check_nccl_symmetric_shards(on, {.blocks = 2, .must_run = true});
          }) == 0);
  };
  runs(1, {});
  runs(3, {.next = turns::by::first, .most = 4096});
  runs(2, {.next = turns::by::chance, .seed = 1, .most = 200});
}
