// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: presets that rotate, and sums of table values.

#include "support/compare_executors.cuh"
#include "support/cuda_golden.cuh"
#include "support/served_sums.hpp"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>
#include <tersum_baselines/served_sum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] presets of THC equal the CPU executor")
{
  SUBCASE("thc_wide4") { compare_all<float>(presets::thc_wide4); }
  SUBCASE("thc_wide4_partial") { compare_all<float>(presets::thc_wide4_partial); }
  SUBCASE("thc_wide4_unrotated") { compare_all<float>(presets::thc_wide4_unrotated); }
  SUBCASE("thc_lookup4") { compare_all<float>(presets::thc_lookup4); }
  SUBCASE("thc_sat4") { compare_all<float>(presets::thc_sat4); }
}

TEST_CASE("[cuda_executor] indices and sums of table values equal the CPU executor's")
{
  stream const on;
  auto const compare = [&](auto const& codec) {
    served_sums const served{codec};
    CHECK((served.template run<device_buffer>(cuda_executor{on.get()}) ==
           served.template run<host_buffer>(cpu_executor{})));
  };
  SUBCASE("in lanes of 8 bits") { compare(presets::thc_lookup4); }
  SUBCASE("in lanes of 16 bits") { compare(presets::thc_lookup4_wide); }
}

TEST_CASE("[cuda_executor] presets that rotate equal the CPU executor")
{
  SUBCASE("rotated_sat2") { compare_all<float>(presets::rotated_sat2); }
  SUBCASE("rotated_sat4")
  {
    compare_all<float>(presets::rotated_sat4);
    compare_offsets<float>(presets::rotated_sat4);
  }
  SUBCASE("rotated_sat8") { compare_all<float>(presets::rotated_sat8); }
  SUBCASE("rotated_sat4_ef") { compare_all<float>(presets::rotated_sat4_ef); }
}

TEST_CASE("[golden] the CUDA executor gives the bytes that the CPU gave")
{
  TERSUM_HOLD_ON_DEVICE(thc_wide4);
  TERSUM_HOLD_ON_DEVICE(thc_wide4_partial);
  TERSUM_HOLD_ON_DEVICE(thc_wide4_unrotated);
  TERSUM_HOLD_ON_DEVICE(thc_lookup4);
  TERSUM_HOLD_ON_DEVICE(thc_sat4);
  TERSUM_HOLD_ON_DEVICE(rotated_sat2);
  TERSUM_HOLD_ON_DEVICE(rotated_sat4);
  TERSUM_HOLD_ON_DEVICE(rotated_sat8);
  TERSUM_HOLD_ON_DEVICE(rotated_sat4_ef);
}
