// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Compiled with -use_fast_math, which no macro shows: a state is refused, whoever initialized it.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[check_device_state] states of kernels that do not compute as IEEE 754 says are refused")
{
  stream const on;
  cuda_executor const exec{on.get()};
  auto const plan = presets::fp32.plan({.coordinates = 5}, {});
  device_buffer const memory{plan.state_bytes(), 0, std::byte{0}};
  auto const is_refused = [&] {
    status const said = check_state(exec, plan, memory.contents());
    return said.code == error_code::unsupported &&
           said.message.find("-use_fast_math") != std::string_view::npos;
  };
  REQUIRE(initialize(exec, plan, memory.contents(), 1) == status{});
  CHECK(is_refused());

  // One that was saved elsewhere is refused, too.
  std::vector<word4> good(plan.state_bytes() / sizeof(word4) + 1);
  auto const bytes = std::as_writable_bytes(std::span{good}).first(plan.state_bytes());
  REQUIRE(initialize(cpu_executor{}, plan, bytes, 1) == status{});
  memory.write(bytes);
  CHECK(is_refused());
}
