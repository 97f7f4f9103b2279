// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A parameter server and three workers, threads of one process, exchange codes of 1 bit in both directions as CLAN does.

#include "parameter_server/parameter_server.hpp"

#include <tersum_server/loopback_messages.hpp>

#include <atomic>
#include <thread>
#include <vector>

int main()
{
  constexpr int ranks = 4;
  tersum::loopback_post post{ranks};
  std::atomic<int> bad = 0;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        tersum::loopback_messages over{post, rank};
        if (!(rank == 0 ? serve(over) : work(over, 40))) { ++bad; }
      });
    }
  }
  return bad == 0 ? 0 : 1;
}
