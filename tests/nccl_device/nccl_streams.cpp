// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Symmetric rounds and exchanges in one kernel without NCCL: ranks are streams of one process, on a GPU and simulated.

#include <doctest/doctest.h>

#include <interop/nccl_conformance.hpp>
#include <nccl_device/on_streams.hpp>

using namespace tersum;

TEST_CASE("[nccl] rounds over symmetric memory, of ranks that are streams")
{
  for (int const ranks : {1, 2}) {
    CAPTURE(ranks);
    CHECK(tests::on_streams(ranks, [](tests::nccl_rank& on) {
            return tests::check_nccl_symmetric(
              on, {.blocks = 2, .coordinates = 3001, .must_run = true});
          }) == 0);
  }
}

TEST_CASE("[nccl] exchanges in one kernel, of ranks that are streams")
{
  for (int const ranks : {1, 3}) {
    CAPTURE(ranks);
    CHECK(tests::on_streams(ranks, [](tests::nccl_rank& on) {
            on.brief = true;
            return tests::check_nccl_fused(on,
                                           {.blocks = 4, .coordinates = 20001, .must_run = true});
          }) == 0);
  }
}
