// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback with decay, gain and reset has the same bytes in kernels as on the CPU.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/top_coordinates.hpp>

#include <doctest/doctest.h>

using namespace tersum;

namespace {

template <class Feedback, metric Metric = plain_metric>
using shot = tests::rotated_codes<256, lloyd_max<2>, two_shot, Feedback, Metric>;
template <class Feedback>
using in_lanes = tests::rotated_sums<256,
                                     rms_range<tracked_correlation>,
                                     stochastic_quantizer<4>,
                                     saturating_sum<4>,
                                     Feedback>;

constexpr decayed_feedback decayed{.decay = .8f, .reset_every = 2};
constexpr averaged_feedback averaged{.averaging = .6f, .reset_every = 2};

TEST_CASE("[feedback] two shots weigh what ranks and owners keep alike in kernels")
{
  shot<decayed_feedback> two{};
  two.feedback = decayed;
  tests::compare_buckets<float>(two);
  shot<kept_by_owners<decayed_feedback>> owners_only{};
  owners_only.feedback = {decayed};
  tests::compare_buckets<float>(owners_only);
  shot<averaged_feedback> ranks_only{};
  ranks_only.feedback = averaged;
  tests::compare_orders<tersum::half>(ranks_only, 3, true);
  shot<decayed_feedback, kept_diagonal> in_metric{};
  in_metric.feedback = decayed;
  tests::compare_orders<float>(in_metric, 3, true);
}

TEST_CASE("[feedback] codes that are summed weigh what is kept alike in kernels")
{
  in_lanes<decayed_feedback> lanes{};
  lanes.feedback = decayed;
  tests::compare_buckets<float>(lanes);
  in_lanes<averaged_feedback> average{};
  average.feedback = averaged;
  tests::compare_orders<bfloat16>(average, 3, true);
}

TEST_CASE("[feedback] chosen chunks weigh what is kept alike in kernels")
{
  codec<top_chunks<64>, no_rotation, cast<tersum::half>, in_wire, averaged_feedback> top{};
  top.feedback = averaged;
  tests::compare_orders<float>(top, 3, true);
}

template <class Feedback = error_feedback>
using in_16_bits = kept_in<bfloat16, Feedback>;

TEST_CASE("[feedback] bfloat16 residuals of two shots have the same bytes in kernels")
{
  shot<in_16_bits<decayed_feedback>, kept_diagonal> both{};
  both.feedback = {decayed};
  tests::compare_buckets<float>(both);
  shot<in_16_bits<kept_by_owners<>>> owners{};
  tests::compare_orders<float>(owners, 3, true);
  shot<in_16_bits<averaged_feedback>> ranks{};
  ranks.feedback = {averaged};
  tests::compare_buckets<tersum::half>(ranks);
}

TEST_CASE("[feedback] bfloat16 residuals of codes that are summed have the same bytes in kernels")
{
  tests::compare_buckets<float>(in_lanes<in_16_bits<>>{});
  tests::compare_orders<bfloat16>(in_lanes<in_16_bits<>>{}, 3, true);
  in_lanes<in_16_bits<averaged_feedback>> average{};
  average.feedback = {averaged};
  tests::compare_orders<float>(average, 3, true);
}

TEST_CASE("[feedback] bfloat16 residuals of what was chosen have the same bytes in kernels")
{
  using chunks = codec<top_chunks<64>, no_rotation, cast<tersum::half>, in_wire, in_16_bits<>>;
  tests::compare_buckets<float>(chunks{});
  tests::compare_orders<tersum::half>(chunks{}, 3, true);
  tests::compare_orders<float>(top_coordinates_codec<in_16_bits<>>{}, 3, true);
}

}  // namespace
