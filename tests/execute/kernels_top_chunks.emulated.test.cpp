// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks that are chosen and converted: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Element, class Codec>
void compare_selection(Codec const& codec)
{
  compare_sizes<Element>(codec);
  compare_orders<Element>(codec, 3, true);
  compare_buckets<Element>(codec);
}

TEST_CASE("[kernels] top chunks as halves")
{
  SUBCASE("64") { compare_selection<float>(presets::topkc_b2); }
  SUBCASE("128, with feedback") { compare_selection<half>(presets::topkc_b05_ef); }
  SUBCASE("64, most of them") { compare_selection<bfloat16>(presets::topkc_b8_ef); }
}

TEST_CASE("[kernels] top chunks of other sizes, payloads and norms")
{
  SUBCASE("32, norms in logarithms")
  {
    compare_selection<float>(
      cast_codec<bfloat16, top_chunks<32, norm_log>>{.chunker = {.bits = 3}});
  }
  SUBCASE("256, norms in float")
  {
    compare_selection<float>(
      cast_codec<float, top_chunks<256, float>, error_feedback>{.chunker = {.bits = 9}});
  }
  SUBCASE("2048, norms in logarithms")
  {
    compare_selection<half>(cast_codec<half, top_chunks<2048, norm_log>>{.chunker = {.bits = 7}});
  }
}

TEST_CASE("[kernels] random chunks")
{
  SUBCASE("without feedback") { compare_selection<float>(presets::randomkc_b2); }
  SUBCASE("with feedback") { compare_selection<float>(presets::randomkc_b2_ef); }
}

}  // namespace
