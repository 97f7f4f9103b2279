// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: presets that rotate.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] presets of THC equal the CPU executor")
{
  SUBCASE("thc_wide4") { compare_all<float>(presets::thc_wide4); }
  SUBCASE("thc_wide4_partial") { compare_all<float>(presets::thc_wide4_partial); }
  SUBCASE("thc_wide4_unrotated") { compare_all<float>(presets::thc_wide4_unrotated); }
  SUBCASE("thc_sat2") { compare_all<float>(presets::thc_sat2); }
  SUBCASE("thc_sat4") { compare_all<float>(presets::thc_sat4); }
  SUBCASE("thc_sat8") { compare_all<float>(presets::thc_sat8); }
}

TEST_CASE("[cuda_executor] presets that rotate equal the CPU executor")
{
  SUBCASE("rotated_sat2") { compare_all<float>(presets::rotated_sat2); }
  SUBCASE("rotated_sat4") { compare_all<float>(presets::rotated_sat4); }
  SUBCASE("rotated_sat8") { compare_all<float>(presets::rotated_sat8); }
  SUBCASE("rotated_sat2_ef") { compare_all<float>(presets::rotated_sat2_ef); }
  SUBCASE("rotated_sat4_ef") { compare_all<float>(presets::rotated_sat4_ef); }
  SUBCASE("rotated_sat8_ef") { compare_all<float>(presets::rotated_sat8_ef); }
}
