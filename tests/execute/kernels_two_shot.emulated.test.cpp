// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two-shot kernel bodies give the bytes of the CPU.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/feedback/error_feedback.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/group_absmax.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <int Size, int Bits, class Feedback = no_feedback>
using shot = tests::rotated_codes<Size, lloyd_max<Bits>, two_shot, Feedback>;

TEST_CASE("[kernels] two shots of fixed chunks")
{
  SUBCASE("1024, 4 bits") { compare_all<float>(presets::two_shot_4); }
  SUBCASE("256, 1 bit") { compare_all<half>(shot<256, 1>{}); }
  SUBCASE("512, 5 bits") { compare_all<bfloat16>(shot<512, 5>{}); }
  SUBCASE("512, bfloat16")
  {
    compare_all<float>(codec<fixed_chunks<512>, no_rotation, cast<bfloat16>, two_shot>{});
  }
  SUBCASE("2048, 4 bits") { compare_all<float>(shot<2048, 4>{}); }
  SUBCASE("2048, 11 bits") { compare_all<float>(shot<2048, 11>{}); }
}

TEST_CASE("[kernels] two shots with feedback on ranks and owners")
{
  SUBCASE("1024, 2 bits")
  {
    compare_all<half>(presets::two_shot<2, error_feedback>{});
    compare_offsets<half>(presets::two_shot<2, error_feedback>{});
  }
  SUBCASE("256, 3 bits") { compare_all<float>(shot<256, 3, error_feedback>{}); }
  SUBCASE("512, 4 bits up and 1 down")
  {
    compare_orders<float>(
      tests::
        rotated_codes<512, lloyd_max<4>, two_shot_to<scaled_codes<lloyd_max<1>>>, error_feedback>{},
      3,
      true);
  }
}

TEST_CASE("[kernels] two shots with a width for every chunk")
{
  SUBCASE("4 bits") { compare_all<float>(presets::allocated_4); }
  SUBCASE("2 bits with feedback")
  {
    compare_all<float>(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}});
    compare_offsets<float>(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}});
  }
  SUBCASE("up to 16 bits, with feedback")
  {
    using chunker = allocated_chunks<256, 2, 8, 10, 13, 16>;
    compare_all<half>(
      codec<chunker, partial_hadamard<256>, scaled_codes<lloyd_max<8>>, two_shot, error_feedback>{
        .chunker = {.bits = 9}});
  }
}

template <int Size, class Quantizer, class Feedback = no_feedback>
using blocks = codec<fixed_chunks<Size>, no_rotation, scaled_codes<Quantizer>, two_shot, Feedback>;

TEST_CASE("[kernels] two shots of blocks with scales of their own")
{
  SUBCASE("256, 4 bits, levels of a float")
  {
    compare_all<float>(blocks<256, group_absmax<4, 16, e2m1_levels, bfloat16_scale>>{});
  }
  SUBCASE("2048, 3 bits, to nearest, with feedback")
  {
    using quantizer = group_absmax<3, 128, linear_levels, bfloat16_scale, no_dither>;
    compare_all<half>(blocks<2048, quantizer, error_feedback>{});
  }
  SUBCASE("512, 8 bits, independent dither")
  {
    compare_all<bfloat16>(
      blocks<512, group_absmax<8, 32, linear_levels, power_of_two_scale, independent>>{});
  }
}

}  // namespace
