// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include <tersum/interop/probe_network.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace tersum;

}  // namespace

TEST_CASE("a probe finds the same network on every rank, and leaves it alone after an error")
{
  constexpr std::size_t ranks = 3;
  loopback_group group{static_cast<int>(ranks)};
  std::array<model::network, ranks> found{};
  std::array<status, ranks> outcomes{};
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::vector<std::byte> scratch(std::size_t{1} << 21);
        loopback_transport const over{group, static_cast<int>(rank)};
        outcomes[rank] = probe_network(over, scratch, found[rank]);
      });
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(outcomes[rank].ok());
    CHECK(found[rank].latency > 0);
    CHECK(found[rank].bandwidth > 0);
    CHECK(found[rank].latency == found[0].latency);
    CHECK(found[rank].bandwidth == found[0].bandwidth);
    CHECK(found[rank].burst == found[0].burst);
  }

  model::network untouched{.latency = 7};
  std::vector<std::byte> scratch(1000);
  CHECK(probe_network(loopback_transport{group, 0}, scratch, untouched).code ==
        error_code::invalid_argument);
  CHECK(untouched.latency == 7);

  loopback_group alone{1};
  scratch.resize(std::size_t{1} << 19);
  CHECK(probe_network(loopback_transport{alone, 0}, scratch, untouched).ok());
  CHECK(untouched.bandwidth == model::unlimited);
}
