// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies of codecs in a metric make the bytes of the CPU.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

template <int Size, feedback Feedback = no_feedback>
using shot = tests::rotated_codes<Size, lloyd_max<2>, two_shot, Feedback, kept_diagonal>;
template <feedback Feedback>
using in_16_bits =
  tests::rotated_codes<256, lloyd_max<2>, two_shot, Feedback, kept_diagonal_in<bfloat16>>;
template <class Range, feedback Feedback = no_feedback>
using in_lanes = tests::
  rotated_sums<256, Range, stochastic_quantizer<4>, saturating_sum<4>, Feedback, kept_diagonal>;

TEST_CASE("[execute] two shots in a metric have the same bytes in kernels")
{
  tests::compare_sizes<float>(shot<1024>{});
  tests::compare_orders<bfloat16>(shot<256>{}, 3, true);
  tests::compare_buckets<float>(shot<256, error_feedback>{});
  tests::compare_offsets<float>(shot<256, error_feedback>{});
}

TEST_CASE("[execute] scales in bfloat16 have the same bytes in kernels")
{
  tests::compare_buckets<float>(in_16_bits<no_feedback>{});
  tests::compare_orders<float>(in_16_bits<error_feedback>{}, 3, true);
}

TEST_CASE("[execute] codes that are summed in a metric have the same bytes in kernels")
{
  tests::compare_orders<float>(in_lanes<rms_range<tracked_correlation>, error_feedback>{}, 3, true);
  tests::compare_buckets<tersum::half>(in_lanes<absmax_range<fixed_headroom>>{});
  tests::compare_offsets<tersum::half>(in_lanes<absmax_range<fixed_headroom>>{});
}

TEST_CASE("[execute] chunks of several widths in a metric have the same bytes in kernels")
{
  using codec_type = codec<allocated_chunks<512, 1, 2, 4, 8>,
                           partial_hadamard<512>,
                           scaled_codes<lloyd_max<8>>,
                           gather,
                           error_feedback,
                           kept_diagonal>;
  tests::compare_orders<float>(codec_type{.chunker = {.bits = 2}}, 2, true);
}

TEST_CASE("[execute] casts in a metric have the same bytes in kernels")
{
  using halves =
    codec<top_chunks<128>, no_rotation, cast<tersum::half>, in_wire, error_feedback, kept_diagonal>;
  tests::compare_buckets<float>(halves{.chunker = {.bits = 4}});
  tests::compare_orders<tersum::half>(halves{.chunker = {.bits = 2}}, 3, true);
  using floats = tests::cast_sums<float, top_chunks<512>, kept_in<bfloat16>, given_diagonal>;
  tests::compare_buckets<bfloat16>(floats{.chunker = {.bits = 12}});
  // Without norms a payload alone says what is not finite.
  using at_random =
    tests::cast_sums<bfloat16, random_chunks<256>, no_feedback, kept_diagonal_in<bfloat16>>;
  tests::compare_places<float>(at_random{.chunker = {.bits = 6}});
  using decayed =
    tests::cast_sums<bfloat16, top_chunks<1024, float>, decayed_feedback, kept_diagonal>;
  tests::compare_buckets<float>(decayed{.chunker = {.bits = 8}});
}

}  // namespace
