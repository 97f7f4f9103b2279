// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals of all kinds of feedback stay finite, and drain.

#include "support/check_finite.hpp"
#include "support/codecs.hpp"

#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;
using tests::check_finite;

namespace {

template <class Feedback>
using sums = tests::rotated_sums<256,
                                 rms_range<tracked_correlation>,
                                 nearest_quantizer<4>,
                                 saturating_sum<4>,
                                 Feedback>;
template <class Feedback>
using two_shots =
  codec<fixed_chunks<256>, partial_hadamard<256>, scaled_codes<lloyd_max<4>>, two_shot, Feedback>;

}  // namespace

TEST_CASE("[feedback] sums and casts keep what is finite")
{
  check_finite(presets::rotated_sat2_ef);
  check_finite(sums<decayed_feedback>{.feedback = {.decay = .5f}});
  check_finite(sums<averaged_feedback>{});
  check_finite(sums<kept_in<bfloat16>>{});
  check_finite(presets::allocated_sat_4_ef);
  check_finite(presets::top_saturating<nearest_quantizer<4>, error_feedback>{
    .chunker = {.bits = 2}, .coder = {.range = {.clip = 0}}});
  check_finite(presets::topkc_b2_ef);
  check_finite(codec<random_chunks<64>, no_rotation, cast<bfloat16>, in_wire, error_feedback>{
    .chunker = {.bits = 2}});
  check_finite(presets::topk_b2_ef);
  check_finite(presets::randomk_b2_ef);
}

TEST_CASE("[feedback] parts, shards, values and factors keep what is finite")
{
  check_finite(presets::two_shot_1_ef);
  check_finite(presets::onebit_ef);
  check_finite(two_shots<kept_by_owners<>>{});
  check_finite(two_shots<kept_by_ranks<>>{});
  check_finite(two_shots<kept_in<bfloat16>>{});
  check_finite(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}});
  check_finite(presets::gathered<2, error_feedback>{});
  check_finite(presets::sharded<2, error_feedback>{});
  check_finite(presets::saturating_shards<nearest_quantizer<4>, error_feedback>{});
  check_finite(presets::values<2, error_feedback>{});
  check_finite(presets::powersgd_r4);
  check_finite(presets::acp_r4);
  check_finite(low_rank_codec<low_rank<1>, cast<half>>{});
}
