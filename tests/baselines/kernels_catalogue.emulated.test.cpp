// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs, one of each kind: laws of their ranges, and kernel bodies that give the bytes of the CPU. Golden digests hold all of them.

#include "../conformance/range_conformance.hpp"
#include "support/compare_kernels.hpp"

#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[catalogue] laws of the ranges")
{
  SUBCASE("mean magnitude") { check_range_laws<256, mean_magnitude_range>(); }
}

TEST_CASE("[kernels] older codecs give the bytes of the CPU")
{
  SUBCASE("groups whose scale may saturate") { compare_orders<float>(presets::nvfp4, 3, true); }
  SUBCASE("two means") { compare_orders<float>(presets::onebit_ef, 3, true); }
  SUBCASE("votes") { compare_orders<float>(presets::sign_majority, 3, true); }
  SUBCASE("coordinates that a seed draws") { compare_sizes<float>(presets::randomk_b2); }
  SUBCASE("the same with feedback")
  {
    using in_bfloat16 = drawn_coordinates_codec<bfloat16, error_feedback>;
    compare_orders<half>(in_bfloat16{.chunker = {.stride = 3}}, 3, true);
  }
}
