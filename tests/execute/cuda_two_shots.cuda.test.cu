// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: two shots.

#include "support/compare_executors.cuh"

#include <tersum/baseline/presets.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] two shots equal the CPU executor")
{
  SUBCASE("two_shot_4") { compare_all<float>(presets::two_shot_4); }
  SUBCASE("two_shot_8") { compare_all<float>(presets::two_shot_8); }
  SUBCASE("two_shot_1_ef") { compare_one<float>(presets::two_shot_1_ef); }
  SUBCASE("two_shot_2_ef of half") { compare_all<tersum::half>(presets::two_shot_2_ef); }
  SUBCASE("blocks_4") { compare_all<float>(presets::blocks_4); }
  SUBCASE("allocated_4") { compare_all<float>(presets::allocated_4); }
  SUBCASE("allocated_2") { compare_one<float>(presets::allocated_2); }
  SUBCASE("allocated_3") { compare_one<float>(presets::allocated_3); }
  SUBCASE("allocated_1") { compare_one<float>(presets::allocated_1); }
  SUBCASE("allocated_6") { compare_one<float>(presets::allocated_6); }
  SUBCASE("allocated_8") { compare_one<float>(presets::allocated_8); }
  SUBCASE("balanced_1") { compare_one<float>(presets::balanced_1); }
  SUBCASE("balanced_2") { compare_one<float>(presets::balanced_2); }
  SUBCASE("balanced_3") { compare_one<float>(presets::balanced_3); }
  SUBCASE("floored_2") { compare_one<float>(presets::floored_2); }
  SUBCASE("floored_3") { compare_one<float>(presets::floored_3); }
  SUBCASE("floored_2 by tensor")
  {
    auto codec              = presets::floored_2;
    codec.chunker.by_tensor = true;
    compare_executors<std::remove_cvref_t<decltype(codec)>, float>(
      {.codec = codec, .gradient = odd_bucket().weighted(), .world = 2, .steps = 2});
  }
  SUBCASE("allocated_2_ef")
  {
    compare_all<float>(presets::allocated_2_ef);
    compare_offsets<float>(presets::allocated_2_ef);
  }
}
