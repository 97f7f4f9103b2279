// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks of a simulated communicator, which are threads.

#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <thread>
#include <vector>

namespace tersum::tests {

//! @brief Calls body(rank) on so many threads, and adds up what they return.
inline int on_all_ranks(int ranks, bool blocking, std::function<int(nccl_rank&)> const& body)
{
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::atomic<int> sum = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      nccl_rank on{.rank = rank, .ranks = ranks};
      ncclConfig_t config      = NCCL_CONFIG_INITIALIZER;
      config.blocking          = blocking ? 1 : 0;
      ncclResult_t const begun = ncclCommInitRankConfig(&on.communicator, ranks, id, rank, &config);
      if (begun != (blocking ? ncclSuccess : ncclInProgress) ||
          cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking) != cudaSuccess) {
        ++sum;
        return;
      }
      sum += body(on);
    });
  }
  for (auto& thread : threads) { thread.join(); }
  return sum;
}

}  // namespace tersum::tests
