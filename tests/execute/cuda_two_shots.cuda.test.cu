// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: two shots and hops.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] two shots and hops equal the CPU executor")
{
  SUBCASE("two_shot_4") { compare_all<float>(presets::two_shot_4); }
  SUBCASE("two_shot_2_ef") { compare_all<tersum::half>(presets::two_shot_2_ef); }
  SUBCASE("per_hop_4_ef") { compare_all<float>(presets::per_hop_4_ef); }
  SUBCASE("allocated_4") { compare_all<float>(presets::allocated_4); }
  SUBCASE("allocated_2_ef") { compare_all<float>(presets::allocated_2_ef); }
}
