// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: codecs in a metric.

#include "support/codecs.hpp"
#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] two shots in a metric equal the CPU executor")
{
  compare_all<float>(presets::metric_2);
  compare_offsets<float>(presets::metric_2);
}

TEST_CASE("[cuda_executor] scales in bfloat16 equal those of the CPU executor")
{
  using in_16_bits =
    tests::rotated_codes<256, lloyd_max<2>, two_shot, no_feedback, kept_diagonal_in<bfloat16>>;
  compare_executors<in_16_bits, float>({.codec           = {},
                                        .gradient        = {.coordinates = 3 * 256 + 77},
                                        .world           = 2,
                                        .steps           = 3,
                                        .misaligned      = true,
                                        .non_finite_step = 1});
}

TEST_CASE(
  "[cuda_executor] owners that keep what their codes lost in a metric equal the CPU executor")
{
  using kept = tests::rotated_codes<256, lloyd_max<2>, two_shot, error_feedback, kept_diagonal>;
  // Scales begin where the gradient does, at odd coordinates among others.
  for (layout const& gradient : {layout{.coordinates = 3 * 256}, odd_bucket().gradient()}) {
    compare_executors<kept, float>({.codec = {}, .gradient = gradient, .world = 2, .steps = 2});
  }
}

TEST_CASE("[cuda_executor] casts in a metric equal the CPU executor")
{
  using halves =
    codec<top_chunks<128>, no_rotation, cast<tersum::half>, in_wire, error_feedback, kept_diagonal>;
  compare_executors<halves, float>({.codec           = {.chunker = {.bits = 4}},
                                    .gradient        = odd_bucket().gradient(),
                                    .world           = 2,
                                    .steps           = 3,
                                    .non_finite_step = 1});
}

TEST_CASE("[cuda_executor] codes in a metric equal the CPU executor")
{
  using in_lanes = tests::rotated_sums<256,
                                       rms_range<tracked_correlation>,
                                       stochastic_quantizer<4>,
                                       saturating_sum<4>,
                                       error_feedback,
                                       kept_diagonal>;
  compare_executors<in_lanes, bfloat16>({.codec           = {},
                                         .gradient        = {.coordinates = 3 * 256 + 77},
                                         .world           = 2,
                                         .steps           = 3,
                                         .misaligned      = true,
                                         .non_finite_step = 1});
}

TEST_CASE("[cuda_executor] gathered codes in a metric equal the CPU executor")
{
  using gathered = tests::rotated_codes<256, lloyd_max<2>, gather, error_feedback, kept_diagonal>;
  compare_executors<gathered, float>({.codec           = {},
                                      .gradient        = odd_bucket().gradient(),
                                      .world           = 3,
                                      .steps           = 3,
                                      .misaligned      = true,
                                      .non_finite_step = 1});
}
