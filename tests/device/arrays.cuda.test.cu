// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reductions, norms, rotations, codes and choices of arrays in device memory: references and an exchange's bytes.

#include "array_cases.hpp"
#include "on_the_device.cuh"
#include "reduce_cases.hpp"
#include "select_cases.hpp"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

// Where the device is simulated: how often the host has asked for an occupancy.
extern "C" [[gnu::weak]] unsigned tersum_occupancy_queries();

TEST_CASE_TEMPLATE("[device] reduce on a device equals the operation",
                   Op,
                   saturating_add<4>,
                   native_sum<std::uint32_t>,
                   native_sum<tersum::half>,
                   native_sum<bfloat16>)
{
  stream const on;
  check_reduce<Op>(place_on(on, 2000));
}

TEST_CASE("[device] sums of 16 bits on a device are exact sums rounded once")
{
  stream const on;
  auto const at = place_on(on, 2000);
  check_sums_of_patterns<tersum::half, reference_half>(at);
  check_sums_of_patterns<bfloat16, reference_bfloat16>(at);
}

TEST_CASE(
  "[device] reduce on a device by operations of the position, and by those that encode again")
{
  stream const on;
  auto const at = place_on(on, 2000);
  check_reduce_of_segments(at);
}

TEST_CASE_TEMPLATE("[device] chunk_norms on a device", Element, float, tersum::half)
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_norms<32, Element>(at);
  check_norms<1024, Element>(at);
}

TEST_CASE_TEMPLATE("[device] rotate and rotate_back on a device", Element, float, bfloat16)
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_rotation<256, Element>(at);
  check_rotation<2048, Element>(at);
}

TEST_CASE("[device] a rotator of users, of the plain form alone, rotates arrays of a device")
{
  stream const on;
  check_plain_rotator<float>(place_on(on, 100000), cosine_transform<128>{});
}

TEST_CASE("[device] quantize and dequantize on a device")
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_codes<128, stochastic_quantizer<4>, saturating_sum<4>>(at);
  check_codes<1024, nearest_quantizer<8>, guard_lanes<16>>(at);
}

TEST_CASE("[device] calls on arrays of a device make an exchange")
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_against_exchange<1024, stochastic_quantizer<4>, saturating_sum<4>>(at, 5003);
  check_against_exchange<512, nearest_quantizer<4>, guard_lanes<8>>(at, 1);
}

TEST_CASE("[device] select_chunks on a device")
{
  stream const on;
  auto const at = place_on(on, 100000);
  for (std::size_t const count : {0u, 1u, 997u}) { check_top_chunks<bfloat16>(at, count); }
  check_top_chunks<float>(at, 997);
  check_top_chunks<bfloat16>(at, 997, 1);
  check_choice_as_cpu(at, 5003);
  // Blocks that wait for each other are counted once.
  auto const queries    = tersum_occupancy_queries;
  unsigned const before = queries == nullptr ? 1 : queries();
  check_choice_as_cpu(at, 5003);
  CHECK(before > 0);
  CHECK((queries == nullptr ? 1 : queries()) == before);
  check_choice_of_exchange(at, 20011);
}

TEST_CASE("[device] calls on arrays of a device name the argument at fault")
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_reduce_arguments(at);
  check_array_arguments(at);
  check_select_arguments(at);
}
