// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reductions of arrays on the CPU.

#include "on_the_cpu.hpp"
#include "reduce_cases.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] reduce equals the operation, of two and of many arrays",
                   Op,
                   saturating_add<2>,
                   saturating_add<4>,
                   saturating_add<8>,
                   native_sum<std::int8_t>,
                   native_sum<std::uint32_t>,
                   native_sum<float>,
                   native_sum<half>,
                   native_sum<bfloat16>,
                   native_max<float>)
{
  on_every_cpu([](auto const& on) { check_reduce<Op>(on); });
}

TEST_CASE("[device] reduce by operations of the position, and by those that encode again")
{
  on_every_cpu([](auto const& on) { check_reduce_of_segments(on); });
}

TEST_CASE("[device] reduce names the argument at fault and writes nothing")
{
  check_reduce_arguments(cpu_placement{});
  std::vector<float> const a(4);
  std::vector<float> to(4);
  CHECK(tersum::reduce(cpu_executor{.threads = 0}, native_sum<float>{}, to, a, a).code ==
        error_code::invalid_argument);
  CHECK(tersum::reduce(cpu_executor{.threads = 0}, native_sum<float>{}, to, a, 1).code ==
        error_code::invalid_argument);
}
