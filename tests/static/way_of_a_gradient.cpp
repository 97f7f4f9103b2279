// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One exchange of one rank, whose lines gcov counts: not those of the plan and of the state.

#include "support/aligned_bytes.hpp"

#include <tersum/tersum.hpp>

#include <vector>

extern "C" void __gcov_reset();

int main()
{
  auto const plan =
    tersum::presets::rotated_sat4.plan({.coordinates = 10'000}, {.size = 2, .rank = 1});
  support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
  std::vector<float> gradient(10'000, 0.5f);
  tersum::cpu_executor const exec{.threads = 1};
  bool const begun = initialize(exec, plan, state, 1).ok();
  __gcov_reset();
  auto const nothing = [](auto) {};
  return begun && all_reduce_mean(exec, plan, gradient, state, workspace, nothing).ok() ? 0 : 1;
}
