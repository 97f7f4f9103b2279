// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden digests of kinds of codecs that have no name, but for those of shards and values; see golden_digest.hpp.

#include "support/golden_digest.hpp"

#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>

#include <interop/presets.hpp>

using namespace tersum;

namespace {

template <class Feedback, class Metric = plain_metric>
using sums_of = codec<fixed_chunks<1024>,
                      partial_hadamard<1024>,
                      rms_range<tracked_correlation>,
                      nearest_quantizer<4>,
                      saturating_sum<4>,
                      Feedback,
                      Metric>;
template <class Feedback, class Metric = plain_metric>
using two_shots_of =
  two_shot_codec<fixed_chunks<1024>, partial_hadamard<1024>, lloyd_max<2>, Feedback, Metric>;
template <class Feedback, class Metric = plain_metric>
using gathered_of =
  gathered_codec<fixed_chunks<1024>, partial_hadamard<1024>, lloyd_max<2>, Feedback, Metric>;

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
    cast_codec<half, top_chunks<128>, error_feedback, kept_diagonal>{.chunker = {.bits = 4}});
  golden.describe_kind("two shots that owners keep", two_shots_of<kept_by_owners<>>{});
  golden.describe_kind("two shots that ranks keep", two_shots_of<kept_by_ranks<>>{});
  golden.describe_kind("two shots with feedback in a metric",
                       two_shots_of<error_feedback, kept_diagonal>{});
  golden.describe_kind("gathered codes in a metric", gathered_of<no_feedback, kept_diagonal>{});
  golden.describe_kind(
    "factors without feedback",
    tests::of_any_matrix(
      low_rank_codec<low_rank<4>, float, low_rank_schedule::paired, no_feedback>{}));
  golden.check();
}
