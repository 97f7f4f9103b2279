// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reductions of arrays on the CPU.

#include "on_the_cpu.hpp"
#include "reduce_cases.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] reduce equals the operation, of two and of many arrays",
                   Op,
                   saturating_add<2>,
                   saturating_add<4>,
                   saturating_add<8>,
                   saturating_add<16>,
                   native_sum<std::int8_t>,
                   native_sum<std::uint32_t>,
                   native_sum<float>,
                   native_sum<half>,
                   native_sum<bfloat16>,
                   native_max<float>)
{
  on_every_cpu([](auto const& on) { check_reduce<Op>(on); });
}

TEST_CASE_TEMPLATE(
  "[device] lanes saturate in every pair of bytes, in arrays of every short length",
  Op,
  saturating_add<2>,
  saturating_add<4>,
  saturating_add<8>,
  saturating_add<16>)
{
  std::vector<std::uint32_t> a, b, want;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    // Each beside others.
    a.push_back(i / 256 * 0x01010101u ^ 0xff003c00u);
    b.push_back(i % 256 * 0x01010101u ^ 0x00a5ff00u);
    want.push_back(Op{}(a[i], b[i]));
  }
  on_every_cpu([&](auto const& on) {
    for (std::size_t count = 0; count <= a.size(); count += count < 64 ? 1 : a.size() - 64) {
      std::vector<std::uint32_t> to(count + 1, 7);
      std::span<std::uint32_t const> const first{a.data(), count}, second{b.data(), count};
      REQUIRE(tersum::reduce(on.exec, Op{}, std::span{to}.first(count), first, second) == status{});
      CHECK(std::equal(to.begin(), to.end() - 1, want.begin()));
      CHECK(to[count] == 7);
    }
  });
}

TEST_CASE("[device] sums of 16 bits are exact sums rounded once")
{
  on_every_cpu([](auto const& on) {
    check_sums_of_patterns<half, reference_half>(on);
    check_sums_of_patterns<bfloat16, reference_bfloat16>(on);
  });
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
