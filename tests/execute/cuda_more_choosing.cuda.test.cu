// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: more codecs that choose.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] more codecs that choose equal the CPU executor")
{
  SUBCASE("topk_b05") { compare_one<float>(presets::topk_b05); }
  SUBCASE("topk_b2") { compare_one<float>(presets::topk_b2); }
  SUBCASE("topk_b8") { compare_one<float>(presets::topk_b8); }
  SUBCASE("randomk_b2") { compare_one<float>(presets::randomk_b2); }
  SUBCASE("randomk_b2_ef") { compare_one<float>(presets::randomk_b2_ef); }
  SUBCASE("topkc_b05") { compare_one<float>(presets::topkc_b05); }
  SUBCASE("topkc_b05_ef") { compare_all<float>(presets::topkc_b05_ef); }
  SUBCASE("allocated_sat_4_ef") { compare_one<float>(presets::allocated_sat_4_ef); }
}
