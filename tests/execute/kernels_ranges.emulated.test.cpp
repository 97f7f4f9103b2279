// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every range with every head-room and scalar: the kernel bodies equal the CPU executor bit for bit.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace tersum;
using namespace tersum::tests;

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

}  // namespace
