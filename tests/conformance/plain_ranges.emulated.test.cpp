// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range that measures by its plain form alone makes the same bytes as one whose statistic fused kernels compute.

#include "conformance/compare_forms.hpp"
#include "conformance/plain_forms.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/types.hpp>

using namespace tersum;

namespace {

template <class Rotator, class Range, class Feedback, int Size>
using in_lanes = codec<fixed_chunks<Size>,
                       Rotator,
                       summed_codes<Range, stochastic_quantizer<4>, saturating_sum<4>>,
                       in_wire,
                       Feedback>;

template <class Range, class Rotator, int Size = 256, class Feedback = no_feedback>
void compare_ranges()
{
  tests::compare_forms(in_lanes<Rotator, tests::plain_range<Range>, Feedback, Size>{},
                       in_lanes<Rotator, Range, Feedback, Size>{});
}

using norms      = rms_range<fixed_headroom>;
using magnitudes = absmax_range<fixed_headroom>;

TEST_CASE("[conformance] norms by the plain form make the same codes")
{
  compare_ranges<norms, partial_hadamard<128>, 128>();
  compare_ranges<norms, partial_hadamard<2048>, 2048>();
  compare_ranges<rms_range<fixed_headroom, bfloat16>, no_rotation, 512, error_feedback>();
}

TEST_CASE("[conformance] magnitudes by the plain form make the same codes")
{
  compare_ranges<magnitudes, partial_hadamard<256>>();
  compare_ranges<magnitudes, partial_hadamard<2048>, 2048, error_feedback>();
  compare_ranges<absmax_range<no_headroom, bfloat16>, no_rotation>();
}

TEST_CASE("[conformance] a tracked range of one's own has the norms of tensors besides")
{
  // As magnitudes have.
  compare_ranges<absmax_range<tracked_correlation>, partial_hadamard<256>>();
}

TEST_CASE("[conformance] a rotator and a range by their plain forms make the same codes")
{
  using rotator = partial_hadamard<256>;
  tests::compare_forms<bfloat16>(
    in_lanes<tests::plain_rotator<rotator>, tests::plain_range<magnitudes>, error_feedback, 256>{},
    in_lanes<rotator, magnitudes, error_feedback, 256>{},
    3);
}

}  // namespace
