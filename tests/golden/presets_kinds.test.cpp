// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden digests of kinds of codecs that have no name, but for those of shards and values; see golden_digest.hpp.

#include "support/codecs.hpp"
#include "support/golden_digest.hpp"

#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/reduce/guard_lanes.hpp>

#include <interop/presets.hpp>

using namespace tersum;

namespace {

template <class Feedback, class Metric = plain_metric>
using sums_of = tests::rotated_sums<1024,
                                    rms_range<tracked_correlation>,
                                    nearest_quantizer<4>,
                                    saturating_sum<4>,
                                    Feedback,
                                    Metric>;
template <class Feedback, class Metric = plain_metric>
using two_shots_of = tests::rotated_codes<1024, lloyd_max<2>, two_shot, Feedback, Metric>;
template <class Feedback, class Metric = plain_metric>
using gathered_of = tests::rotated_codes<1024, lloyd_max<2>, gather, Feedback, Metric>;

}  // namespace

TEST_CASE("[golden] exchanges of kinds without a name are what they were")
{
  tests::golden_presets golden{"kinds"};
  golden.describe_kind("sums with decayed feedback", sums_of<decayed_feedback>{});
  golden.describe_kind("sums with averaged feedback", sums_of<averaged_feedback>{});
  golden.describe_kind("sums with feedback in bfloat16", sums_of<kept_in<bfloat16>>{});
  golden.describe_kind("sums in a metric", sums_of<error_feedback, kept_diagonal>{});
  golden.describe_kind(
    "chosen casts in a metric",
    codec<top_chunks<128>, no_rotation, cast<half>, in_wire, error_feedback, kept_diagonal>{
      .chunker = {.bits = 4}});
  golden.describe_kind("two shots that owners keep", two_shots_of<kept_by_owners<>>{});
  golden.describe_kind("two shots that ranks keep", two_shots_of<kept_by_ranks<>>{});
  golden.describe_kind("two shots with feedback in a metric",
                       two_shots_of<error_feedback, kept_diagonal>{});
  golden.describe_kind("gathered codes in a metric", gathered_of<no_feedback, kept_diagonal>{});
  golden.describe_kind(
    "factors without feedback",
    tests::of_any_matrix(
      low_rank_codec<low_rank<4>, cast<float>, low_rank_schedule::paired, no_feedback>{}));
  using guarded = tests::
    rotated_sums<256, rms_range<no_headroom, bfloat16>, stochastic_quantizer<4>, guard_lanes<8>>;
  golden.describe_kind("guarded lanes of small chunks", guarded{});
  using large = tests::rotated_sums<4096, rms_range<>, stochastic_quantizer<4>, saturating_sum<4>>;
  golden.describe_kind("sums of large chunks", large{});
  golden.describe_kind("factors in half",
                       tests::of_any_matrix(low_rank_codec<low_rank<3>, cast<half>>{}));
  golden.check();
}
