// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels that reduce arrays, in the emulator.

#include "in_the_emulator.hpp"
#include "reduce_cases.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] kernels that reduce two arrays equal the operation",
                   Op,
                   saturating_add<2>,
                   saturating_add<8>,
                   saturating_add<16>,
                   native_sum<std::int16_t>,
                   native_sum<std::uint32_t>,
                   native_sum<std::uint64_t>,
                   native_sum<bfloat16>,
                   native_max<float>,
                   native_max<bfloat16>)
{
  in_every_order([](auto const& on) { check_reduce_of_two<Op>(on); });
}

TEST_CASE_TEMPLATE("[device] kernels that reduce two and many arrays equal the operation",
                   Op,
                   saturating_add<4>,
                   native_sum<std::int8_t>,
                   native_sum<float>,
                   native_sum<half>)
{
  in_every_order([](auto const& on) { check_reduce<Op>(on); });
}

TEST_CASE("[device] reduce by operations of the position, and by those that encode again")
{
  in_every_order([](auto const& on) { check_reduce_of_segments(on); });
}

TEST_CASE("[device] launches that reduce name the argument at fault and write nothing")
{
  check_reduce_arguments(emulated_placement{});
}
