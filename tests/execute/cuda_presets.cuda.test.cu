// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: presets that rotate, and sums of table values; and the golden files.

#include "support/compare_executors.cuh"
#include "support/golden_exchange.hpp"
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
  // All ranks share a stream, so that what one of them does for all comes after what each has enqueued.
  stream const on;
  cuda_executor const exec{on.get()};
#define TERSUM_HOLD(name) check_golden<float, device_buffer>(exec, #name, presets::name)
  TERSUM_HOLD(thc_wide4);
  TERSUM_HOLD(thc_wide4_partial);
  TERSUM_HOLD(thc_wide4_unrotated);
  TERSUM_HOLD(thc_lookup4);
  TERSUM_HOLD(thc_sat4);
  TERSUM_HOLD(rotated_sat2);
  TERSUM_HOLD(rotated_sat4);
  TERSUM_HOLD(rotated_sat8);
  TERSUM_HOLD(rotated_sat4_ef);
}
