// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotator without its packed form makes the same bytes as with it, on the CPU and in kernels.

#include "conformance/compare_forms.hpp"
#include "conformance/plain_forms.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>

using namespace tersum;

namespace {

template <class Rotator, class Range = rms_range<tracked_correlation>, class Feedback = no_feedback>
using in_lanes = codec<fixed_chunks<(Rotator::rotation_size > 1 ? Rotator::rotation_size : 256)>,
                       Rotator,
                       summed_codes<Range, stochastic_quantizer<4>, saturating_sum<4>>,
                       in_wire,
                       Feedback>;

template <template <class> class Codec, class Rotator>
void compare_rotators()
{
  tests::compare_forms(Codec<tests::plain_rotator<Rotator>>{}, Codec<Rotator>{});
}

template <class Rotator>
using tracked = in_lanes<Rotator>;
template <class Rotator>
using of_magnitudes = in_lanes<Rotator, absmax_range<fixed_headroom, bfloat16>>;
template <class Rotator>
using feeding = in_lanes<Rotator, rms_range<tracked_correlation>, error_feedback>;

template <class Rotator>
using allocated = codec<allocated_chunks<256, 2, 4, 8>,
                        Rotator,
                        summed_codes<rms_range<tracked_correlation, bfloat16>,
                                     stochastic_quantizer<8>,
                                     saturating_sum<8>>,
                        in_wire,
                        error_feedback>;
template <class Rotator>
using shots =
  codec<fixed_chunks<512>, Rotator, scaled_codes<lloyd_max<4>>, two_shot, error_feedback>;
template <class Rotator>
using allocated_shots = codec<allocated_chunks<256, 1, 2, 4, 8>,
                              Rotator,
                              scaled_codes<lloyd_max<8>>,
                              two_shot,
                              error_feedback>;

TEST_CASE("[conformance] a Hadamard transform by its plain form alone makes the same codes")
{
  compare_rotators<tracked, partial_hadamard<128>>();
  compare_rotators<tracked, partial_hadamard<1024>>();
  compare_rotators<tracked, partial_hadamard<2048>>();
}

TEST_CASE("[conformance] no rotation by its plain form alone makes the same codes")
{
  compare_rotators<tracked, no_rotation>();
}

TEST_CASE("[conformance] ranges measure what a plain form has rotated")
{
  compare_rotators<of_magnitudes, partial_hadamard<256>>();
}

TEST_CASE("[conformance] feedback keeps what a plain form has rotated back")
{
  compare_rotators<feeding, partial_hadamard<256>>();
  compare_rotators<allocated, partial_hadamard<256>>();
}

TEST_CASE("[conformance] two shots rotate by the plain form of their rotator")
{
  compare_rotators<shots, partial_hadamard<512>>();
  compare_rotators<allocated_shots, partial_hadamard<256>>();
}

}  // namespace
