// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor and gradients of 16 bits: the bytes of the CPU executor.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE(
  "[cuda_executor] casts equal the CPU executor", Element, float, tersum::half, tersum::bfloat16)
{
  SUBCASE("fp32") { compare_all<Element>(presets::fp32); }
  SUBCASE("fp16") { compare_all<Element>(presets::fp16); }
  SUBCASE("bf16") { compare_all<Element>(presets::bf16); }
}

TEST_CASE_TEMPLATE("[cuda_executor] gradients of 16 bits equal the CPU executor",
                   Element,
                   tersum::half,
                   tersum::bfloat16)
{
  SUBCASE("thc_wide4") { compare_all<Element>(presets::thc_wide4); }
  SUBCASE("rotated_sat4") { compare_all<Element>(presets::rotated_sat4); }
  SUBCASE("rotated_sat4_ef")
  {
    compare_all<Element>(presets::rotated_sat4_ef);
    compare_offsets<Element>(presets::rotated_sat4_ef);
  }
}
