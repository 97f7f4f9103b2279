// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that only convert: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[kernels] casts", Element, float, half, bfloat16)
{
  SUBCASE("fp32") { compare_all<Element>(presets::fp32); }
  SUBCASE("fp16")
  {
    compare_all<Element>(presets::fp16);
    compare_offsets<Element>(presets::fp16);
  }
  SUBCASE("bf16") { compare_all<Element>(presets::bf16); }
}

TEST_CASE("[kernels] casts of chunks of other sizes than a block takes at once")
{
  SUBCASE("less")
  {
    compare_all<float>(codec<fixed_chunks<128>, no_rotation, cast<half>, in_wire>{});
  }
  SUBCASE("more")
  {
    compare_all<half>(codec<fixed_chunks<4096>, no_rotation, cast<float>, in_wire>{});
  }
}

}  // namespace
