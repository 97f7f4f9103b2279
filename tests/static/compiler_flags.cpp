// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Prints what `initialize` says to the options that this program is compiled with, or its probe alone, which compiles in a moment.

#if defined(TERSUM_PROBE_ALONE)
#include <tersum/execute/detail/arithmetic_probe.hpp>
#else
#include <tersum/tersum.hpp>
#endif

#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

int main()
{
#if defined(TERSUM_PROBE_ALONE)
  auto const said = tersum::detail::check_arithmetic();
#else
  auto const plan = tersum::presets::fp32.plan({.coordinates = 5}, {});
  std::vector<tersum::word4> state(plan.state_bytes() / sizeof(tersum::word4) + 1);
  auto const said =
    initialize(tersum::cpu_executor{}, plan, std::as_writable_bytes(std::span{state}), 1);
#endif
  std::printf("%d %s\n", static_cast<int>(said.code), said.message.data());
}
