// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose codes or casts are summed: casts, every range with every head-room and scalar, widths, feedback, and gradients of 16 bits. The
//! kernel bodies equal the CPU executor bit for bit.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/tersum.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[kernels] casts, wherever a gradient begins", Element, float, half, bfloat16)
{
  compare_all<Element>(presets::fp16);
  compare_offsets<Element>(presets::fp16);
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

template <template <class, class> class Range, class Headroom, class Scalar, int Size = 512>
using ranged =
  tests::rotated_sums<Size, Range<Headroom, Scalar>, stochastic_quantizer<4>, saturating_sum<4>>;

template <template <class, class> class Range, class Headroom, class Scalar>
using unrotated = tests::
  plain_sums<256, Range<Headroom, Scalar>, nearest_quantizer<2>, saturating_sum<2>, error_feedback>;

template <template <class, class> class Range>
void compare_range()
{
  compare_orders<float>(ranged<Range, no_headroom, float>{}, 3, true);
  compare_orders<float>(ranged<Range, no_headroom, bfloat16>{}, 2);
  compare_orders<float>(ranged<Range, fixed_headroom, float>{}, 3);
  compare_orders<float>(
    ranged<Range, fixed_headroom, bfloat16>{.coder = {.range = {.headroom = {.multiple = 2.5F}}}},
    2,
    true);
  compare_orders<float>(
    ranged<Range, tracked_correlation, float>{.coder = {.range = {.clip = 1.7F}}}, 3, true);
  compare_orders<float>(ranged<Range, tracked_correlation, bfloat16>{}, 2, true);
  compare_orders<float>(unrotated<Range, tracked_correlation, bfloat16>{}, 2, true);
}

TEST_CASE("[kernels] root mean squares") { compare_range<rms_range>(); }
TEST_CASE("[kernels] largest magnitudes") { compare_range<absmax_range>(); }
TEST_CASE("[kernels] one norm for the tensor") { compare_range<global_range>(); }

TEST_CASE_TEMPLATE("[kernels] more chunks than a tensor body has threads",
                   Codec,
                   ranged<rms_range, tracked_correlation, float, 128>,
                   ranged<absmax_range, tracked_correlation, float, 128>,
                   ranged<global_range, tracked_correlation, float, 128>)
{
  std::uint64_t const coordinates = prime_from(std::uint64_t{128} * 1100);
  compare_kernels<Codec, float>({.gradient = {.coordinates = coordinates}, .steps = 2});
}

TEST_CASE("[kernels] top chunks in saturating codes")
{
  SUBCASE("stochastic") { compare_all<float>(presets::topkc_sat4); }
  SUBCASE("with feedback")
  {
    compare_places<half>(presets::top_saturating<nearest_quantizer<4>, error_feedback>{
      .chunker = {.bits = 2}, .coder = {.range = {.clip = 0}}});
  }
}

TEST_CASE("[kernels] a width for every chunk")
{
  SUBCASE("2 bits") { compare_places<float>(presets::allocated_sat_2); }
  SUBCASE("4 bits with feedback") { compare_all<float>(presets::allocated_sat_4_ef); }
  SUBCASE("energies that count by their fourth root")
  {
    auto codec              = presets::allocated_sat_2;
    codec.chunker.weighting = 0.25f;
    compare_places<bfloat16>(codec);
    compare_offsets<bfloat16>(codec);
  }
  SUBCASE("of tensors with weights")
  {
    compare_kernels<std::remove_cvref_t<decltype(presets::allocated_sat_2)>, bfloat16>(
      {.codec = presets::allocated_sat_2, .gradient = odd_bucket().weighted(), .steps = 2});
  }
}

template <int Size, int... Widths>
using allocated =
  codec<allocated_chunks<Size, Widths...>,
        partial_hadamard<Size>,
        summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<8>, saturating_sum<8>>,
        in_wire>;

TEST_CASE("[kernels] a width for every chunk, of other sizes")
{
  SUBCASE("128, two widths")
  {
    compare_places<float>(allocated<128, 4, 8>{.chunker = {.bits = 5}});
  }
  SUBCASE("2048") { compare_places<float>(allocated<2048, 2, 4, 8>{.chunker = {.bits = 3}}); }
}

TEST_CASE("[kernels] rotated codes of 8 bits with feedback equal the CPU executor")
{
  compare_preset(presets::tracked_saturating<nearest_quantizer<8>, error_feedback>{
    .coder = {.range = {.clip = 3.6f}}});
}

}  // namespace
