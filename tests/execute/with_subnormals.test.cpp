// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include "support/flush_subnormals.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using namespace tersum;

// The mean of two ranks that have the same gradient: their sum is exact, and half of it the gradient.
std::vector<float> mean_of_two(cpu_executor const& exec, std::vector<float> gradient)
{
  auto const plan = presets::fp32.plan({.coordinates = gradient.size()}, {.size = 2, .rank = 0});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s = std::as_writable_bytes(std::span{state});
  auto const w = std::as_writable_bytes(std::span{workspace});
  REQUIRE(initialize(exec, plan, s, 1) == status{});
  REQUIRE(all_reduce_mean(exec, plan, gradient, s, w, [&](auto const& round) {
            return exec.reduce(round.op, round.data, round.data, round.data, round.count);
          }) == status{});
  return gradient;
}

TEST_CASE("[cpu_executor] subnormal coordinates survive where the caller flushes them to zero")
{
  if (!tests::flush_subnormals::works()) {
    MESSAGE("not tested: no such switch");
    return;
  }
  std::vector<float> gradient(50'000);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 167 % 0x800000) |
                                       (i % 2 == 0 ? 0x80000000u : 0u));
  }
  for (int const threads : {1, 2, 3}) {
    for (instruction_set const set : {instruction_set::baseline, best_instruction_set()}) {
      CAPTURE(threads);
      CAPTURE(static_cast<int>(set));
      std::vector<float> mean;
      bool restored = false;
      {
        tests::flush_subnormals const scope;
        mean                 = mean_of_two({.threads = threads, .instructions = set}, gradient);
        float volatile small = 0x1p-127f;
        restored             = small * 0x1p64f == 0.0f;  // the caller has its setting back
      }
      CHECK(restored);
      std::size_t unlike = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        unlike +=
          std::bit_cast<std::uint32_t>(mean[i]) != std::bit_cast<std::uint32_t>(gradient[i]);
      }
      CHECK(unlike == 0);
    }
  }
}

}  // namespace
