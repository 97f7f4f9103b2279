// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs, one of each kind: laws of their ranges, and kernel bodies that give the bytes of the CPU.

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

namespace {

// Three ranks, the last chunk short, a NaN and an Inf in the middle step: one order of threads.
template <class Codec>
void compare_once(Codec const& codec)
{
  compare_kernels<Codec, float>({.codec           = codec,
                                 .gradient        = {.coordinates = several_chunks<Codec>()},
                                 .world           = 3,
                                 .steps           = 3,
                                 .non_finite_step = 1});
}

}  // namespace

TEST_CASE("[kernels] the rest of the older codecs give the bytes of the CPU")
{
  SUBCASE("mxfp4") { compare_once(presets::mxfp4); }
  SUBCASE("mxfp8") { compare_once(presets::mxfp8); }
  SUBCASE("qsgd_4") { compare_once(presets::qsgd_4); }
  SUBCASE("natural_4") { compare_once(presets::natural_4); }
  SUBCASE("terngrad") { compare_once(presets::terngrad); }
  SUBCASE("thc_lookup4_wide") { compare_once(presets::thc_lookup4_wide); }
}
