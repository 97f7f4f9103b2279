// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: presets with fixed codes of other width or feedback than cuda_presets.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] more presets of THC equal the CPU executor")
{
  SUBCASE("thc_sat2") { compare_all<float>(presets::thc_sat2); }
  SUBCASE("thc_sat8") { compare_all<float>(presets::thc_sat8); }
}

TEST_CASE("[cuda_executor] more presets that rotate equal the CPU executor")
{
  SUBCASE("rotated_sat2_ef") { compare_all<float>(presets::rotated_sat2_ef); }
}

TEST_CASE("[cuda_executor] sums of older codecs equal the CPU executor")
{
  constexpr std::uint64_t few = 5003;
  SUBCASE("votes") { compare_one<float>(presets::sign_majority); }
  SUBCASE("three values") { compare_one<float>(presets::terngrad, few); }
  SUBCASE("table values in 16 bits") { compare_one<float>(presets::thc_lookup4_wide, few); }
}
