// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: codecs that choose.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] codecs that choose equal the CPU executor")
{
  SUBCASE("topk_b2_ef") { compare_one<float>(presets::topk_b2_ef); }
  SUBCASE("topkc_b2_ef") { compare_all<float>(presets::topkc_b2_ef); }
  SUBCASE("topkc_b2 of bfloat16, wherever the gradient begins")
  {
    compare_offsets<bfloat16>(presets::topkc_b2);
  }
  SUBCASE("topkc_b05 of bfloat16") { compare_all<bfloat16>(presets::topkc_b05); }
  SUBCASE("randomkc_b2") { compare_all<float>(presets::randomkc_b2); }
  SUBCASE("topkc_sat4") { compare_all<float>(presets::topkc_sat4); }
  SUBCASE("allocated_sat_4") { compare_all<float>(presets::allocated_sat_4); }
  SUBCASE("allocated_sat_2") { compare_one<float>(presets::allocated_sat_2); }
  SUBCASE("widths of 2 bits with feedback, of half")
  {
    compare_one<tersum::half>(
      presets::allocated_saturating<nearest_quantizer<8>, error_feedback>{.chunker = {.bits = 2}});
  }
  SUBCASE("widths of 3 bits with feedback, of half")
  {
    compare_one<tersum::half>(
      presets::allocated_saturating<nearest_quantizer<8>, error_feedback>{.chunker = {.bits = 3}});
  }
  SUBCASE("allocated_sat_4_ef of half") { compare_one<tersum::half>(presets::allocated_sat_4_ef); }
  // More chunks than one block selects.
  SUBCASE("2^18 chunks") { compare_one<float>(presets::topkc_b2, 64 << 18); }
  SUBCASE("topkc_b2") { compare_one<float>(presets::topkc_b2); }
  SUBCASE("topkc_b8") { compare_one<float>(presets::topkc_b8); }
}
