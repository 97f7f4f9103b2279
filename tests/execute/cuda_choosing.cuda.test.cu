// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: codecs that choose, two shots and hops.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] codecs that choose equal the CPU executor")
{
  SUBCASE("topk_b2_ef") { compare_one<float>(presets::topk_b2_ef); }
  SUBCASE("topkc_b2_ef") { compare_all<float>(presets::topkc_b2_ef); }
  SUBCASE("topkc_b05 of bfloat16") { compare_all<bfloat16>(presets::topkc_b05); }
  SUBCASE("randomkc_b2") { compare_all<float>(presets::randomkc_b2); }
  SUBCASE("topkc_sat4") { compare_all<float>(presets::topkc_sat4); }
  SUBCASE("allocated_sat_4") { compare_all<float>(presets::allocated_sat_4); }
  SUBCASE("balanced_sat_2_ef") { compare_all<tersum::half>(presets::balanced_sat_2_ef); }
  // More chunks than one block selects.
  SUBCASE("2^18 chunks") { compare_one<float>(presets::topkc_b2, 64 << 18); }
}

TEST_CASE("[cuda_executor] two shots and hops equal the CPU executor")
{
  SUBCASE("two_shot_4") { compare_all<float>(presets::two_shot_4); }
  SUBCASE("two_shot_1") { compare_all<float>(presets::two_shot_1); }
  SUBCASE("two_shot_3") { compare_all<float>(presets::two_shot_3); }
  SUBCASE("two_shot_8") { compare_all<float>(presets::two_shot_8); }
  SUBCASE("two_shot_2_ef") { compare_all<tersum::half>(presets::two_shot_2_ef); }
  SUBCASE("per_hop_4_ef") { compare_all<float>(presets::per_hop_4_ef); }
  SUBCASE("dynamiq_hop") { compare_all<float>(presets::dynamiq_hop{.chunker = {.bits = 64}}); }
  SUBCASE("blocks_4") { compare_all<float>(presets::blocks_4); }
  SUBCASE("dynamiq_4") { compare_all<float>(presets::dynamiq_4); }
  SUBCASE("allocated_4") { compare_all<float>(presets::allocated_4); }
  SUBCASE("allocated_2_ef") { compare_all<float>(presets::allocated_2_ef); }
}
