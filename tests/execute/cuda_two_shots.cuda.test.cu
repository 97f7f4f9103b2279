// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: two shots.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] two shots equal the CPU executor")
{
  SUBCASE("two_shot_4") { compare_all<float>(presets::two_shot_4); }
  SUBCASE("two_shot_8") { compare_all<float>(presets::two_shot_8); }
  SUBCASE("two_shot_1_ef") { compare_one<float>(presets::two_shot_1_ef); }
  SUBCASE("2 bits with feedback, of half")
  {
    compare_all<tersum::half>(presets::two_shot<2, error_feedback>{});
  }
  SUBCASE("blocks_4") { compare_all<float>(presets::blocks_4); }
  SUBCASE("allocated_4") { compare_all<float>(presets::allocated_4); }
  SUBCASE("allocated_2") { compare_one<float>(presets::allocated_2); }
}
