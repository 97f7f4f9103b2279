// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden digests of gathered codes, of codecs of shards and of values; see golden_digest.hpp. Where ranks do not divide the coordinates, shards
//! begin and end within chunks.

#include "support/codecs.hpp"
#include "support/golden_digest.hpp"

#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/reduce/widening_sum.hpp>

using namespace tersum;

namespace {

template <class Quantizer, class Feedback = no_feedback, class Metric = plain_metric>
using values_of = tests::rotated_codes<1024, Quantizer, publish, Feedback, Metric>;
template <class Range, class Quantizer, class Reducer, class Feedback = no_feedback>
using summed_of = codec<fixed_chunks<1024>,
                        partial_hadamard<1024>,
                        summed_codes<Range, Quantizer, Reducer>,
                        shard,
                        Feedback>;

}  // namespace

TEST_CASE("[golden] exchanges of shards and of values are what they were")
{
  tests::golden_presets golden{"shards"};
  TERSUM_SHARDS_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.describe_kind("shards with feedback",
                       tests::rotated_codes<1024, lloyd_max<2>, shard, error_feedback>{});
  golden.describe_kind("shards in halves",
                       codec<fixed_chunks<1024>, no_rotation, cast<half>, shard>{});
  golden.describe_kind("summed shards with feedback",
                       summed_of<rms_range<tracked_correlation>,
                                 nearest_quantizer<4>,
                                 saturating_sum<4>,
                                 error_feedback>{.coder = {.range = {.clip = 1.9f}}});
  golden.describe_kind(
    "summed shards in wider lanes",
    summed_of<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>{
      .coder = {.range = {.clip = 3.0f}}});
  golden.describe_kind("values with feedback", values_of<lloyd_max<4>, error_feedback>{});
  golden.describe_kind("values of differences", values_of<lloyd_max<4>, difference_feedback>{});
  golden.describe_kind("values in a metric",
                       values_of<lloyd_max<3>, error_feedback, kept_diagonal>{});
  golden.describe_kind("values in halves",
                       codec<fixed_chunks<1024>, no_rotation, cast<half>, publish>{});
  golden.check();
}

TEST_CASE("[golden] exchanges of gathered codes are what they were")
{
  tests::golden_presets golden{"gathered"};
  TERSUM_GATHERED_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.describe_fully("gathered codes with feedback", presets::gathered<2, error_feedback>{});
  golden.check();
}
