// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback and metrics by their operations alone keep the same bits as where vectors do what they say.

#include "conformance/compare_forms.hpp"
#include "conformance/plain_forms.hpp"
#include "support/codecs.hpp"

#include <tersum/presets.hpp>
#include <tersum/types.hpp>
#include <tersum_baselines/top_coordinates.hpp>

using namespace tersum;

namespace {

template <class Feedback>
using in_lanes = tests::rotated_sums<1024,
                                     rms_range<tracked_correlation>,
                                     stochastic_quantizer<4>,
                                     saturating_sum<4>,
                                     Feedback>;
template <class Feedback>
using allocated = codec<allocated_chunks<256, 2, 4, 8>,
                        partial_hadamard<256>,
                        summed_codes<rms_range<tracked_correlation, bfloat16>,
                                     stochastic_quantizer<8>,
                                     saturating_sum<8>>,
                        in_wire,
                        Feedback>;
template <class Feedback>
using shots = codec<allocated_chunks<256, 1, 2, 4, 8>,
                    partial_hadamard<256>,
                    scaled_codes<lloyd_max<8>>,
                    two_shot,
                    Feedback>;
template <class Feedback>
using largest = codec<top_chunks<64>, no_rotation, cast<half>, in_wire, Feedback>;

template <class Feedback>
using coordinates = top_coordinates_codec<Feedback>;

template <template <class> class Codec, class Element = float>
void compare_feedback()
{
  tests::compare_forms<Element>(Codec<tests::plain_feedback>{}, Codec<error_feedback>{});
}

TEST_CASE("[conformance] feedback by its operations makes the same codes and keeps the same")
{
  compare_feedback<in_lanes>();
  compare_feedback<in_lanes, bfloat16>();
  compare_feedback<allocated>();
}

TEST_CASE("[conformance] feedback by its operations keeps what two shots lose")
{
  compare_feedback<shots>();
}

TEST_CASE("[conformance] feedback by its operations keeps chunks that were not chosen")
{
  compare_feedback<largest>();
  compare_feedback<coordinates>();
}

template <metric Metric>
using in_metric = tests::rotated_sums<256,
                                      rms_range<tracked_correlation>,
                                      stochastic_quantizer<4>,
                                      saturating_sum<4>,
                                      no_feedback,
                                      Metric>;

TEST_CASE("[conformance] a metric by its operations keeps the same scales")
{
  tests::compare_forms(in_metric<tests::plain_diagonal>{}, in_metric<kept_diagonal>{});
}

}  // namespace
