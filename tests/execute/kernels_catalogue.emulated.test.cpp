// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs, one of each kind: laws of their ranges, and kernel bodies that give the bytes of the CPU.

#include "../conformance/range_conformance.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/baseline/catalogue.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[catalogue] laws of the ranges")
{
  SUBCASE("mean magnitude") { check_range_laws<256, mean_magnitude_range>(); }
  SUBCASE("norm") { check_range_laws<256, norm_range>(); }
  SUBCASE("norm of a tensor") { check_range_laws<256, tensor_norm_range>(); }
}

TEST_CASE("[kernels] older codecs give the bytes of the CPU")
{
  SUBCASE("groups whose scale may saturate") { compare_orders<float>(presets::nvfp4, 3, true); }
  SUBCASE("a codebook that is not symmetric")
  {
    using rotated = two_shot_codec<fixed_chunks<256>, partial_hadamard<256>, normal_float<4>>;
    compare_orders<float>(rotated{}, 3, true);
  }
  SUBCASE("signs by the mean magnitude") { compare_orders<float>(presets::sign_mean_ef, 3, true); }
  SUBCASE("affine codes")
  {
    using affine = two_shot_codec<fixed_chunks<512>, no_rotation, group_minmax<8, 32>>;
    compare_orders<float>(affine{}, 3, true);
  }
  SUBCASE("two means") { compare_orders<float>(presets::onebit_ef, 3, true); }
  SUBCASE("votes") { compare_orders<float>(presets::sign_majority, 3, true); }
  SUBCASE("powers of two") { compare_orders<float>(presets::global_natural_5, 3, true); }
  SUBCASE("a threshold from a sample")
  {
    compare_sizes<float>(presets::topk_sampled_b2);
    using with_feedback = sampled_coordinates_codec<error_feedback>;
    compare_orders<half>(with_feedback{.chunker = {{.bits = 8}, 7}}, 3, true);
  }
  SUBCASE("coordinates that a seed draws") { compare_sizes<float>(presets::randomk_b2); }
  SUBCASE("the same with feedback")
  {
    using in_bfloat16 = drawn_coordinates_codec<bfloat16, error_feedback>;
    compare_orders<half>(in_bfloat16{.chunker = {.stride = 3}}, 3, true);
  }
  SUBCASE("levels by the norm of a tensor")
  {
    compare_orders<float>(presets::tensor_qsgd_4, 3, true);
  }
  SUBCASE("a step that follows the mean") { compare_orders<float>(presets::intsgd_8, 3, true); }
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
  SUBCASE("nf4") { compare_once(presets::nf4); }
  SUBCASE("qsgd_4") { compare_once(presets::qsgd_4); }
  SUBCASE("natural_4") { compare_once(presets::natural_4); }
  SUBCASE("minmax_8") { compare_once(presets::minmax_8); }
  SUBCASE("terngrad") { compare_once(presets::terngrad); }
  SUBCASE("global_qsgd_4") { compare_once(presets::global_qsgd_4); }
  SUBCASE("thc_lookup4_wide") { compare_once(presets::thc_lookup4_wide); }
  SUBCASE("thc_lookup4_widest") { compare_once(presets::thc_lookup4_widest); }
}
