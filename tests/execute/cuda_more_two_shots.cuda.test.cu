// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: more two shots.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] more two shots equal the CPU executor")
{
  SUBCASE("two_shot_2") { compare_all<float>(presets::two_shot_2); }
  SUBCASE("two_shot_3") { compare_all<float>(presets::two_shot_3); }
  SUBCASE("two_shot_4_ef") { compare_all<float>(presets::two_shot_4_ef); }
  SUBCASE("two_shot_4_8") { compare_one<float>(presets::two_shot_4_8); }
  SUBCASE("metric_3") { compare_all<float>(presets::metric_3); }
  SUBCASE("blocks_8") { compare_all<float>(presets::blocks_8); }
}

TEST_CASE("[cuda_executor] two shots of older codecs equal the CPU executor")
{
  SUBCASE("scales that may saturate") { compare_one<float>(presets::nvfp4); }
  SUBCASE("two means") { compare_one<float>(presets::onebit_ef); }
  constexpr std::uint64_t few = 9001;
  SUBCASE("elements of 4 bits") { compare_one<float>(presets::mxfp4, few); }
  SUBCASE("elements of 8 bits") { compare_one<float>(presets::mxfp8, few); }
  SUBCASE("levels by the largest of 128") { compare_one<float>(presets::qsgd_4, few); }
  SUBCASE("powers of two") { compare_one<float>(presets::natural_4, few); }
}
