// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks of a simulated communicator whose kernels run at the same time.

#pragma once

#include <chrono>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <interop/simulated/on_all_ranks.hpp>
#include <support/simulator/interleaved.hpp>
#include <support/simulator/runtime_state.hpp>

namespace tersum::tests {

//! @brief What all ranks answer together, their warps in some order.
inline int on_interleaved_ranks(int ranks,
                                simulator::taking_turns order,
                                std::function<int(nccl_rank&)> const& body)
{
  simulator::interleaved_ranks device{ranks, order};
  device.patience = std::chrono::seconds(300);
  return on_all_ranks(ranks, true, [&](nccl_rank& on) {
    simulator::interleaved_ranks::member const here{device, on.rank};
    on.loads = simulator::launches_that_load;
    return body(on);
  });
}

}  // namespace tersum::tests
