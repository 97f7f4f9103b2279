// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies of codecs in a metric make the bytes of the CPU.

#include "support/compare_kernels.hpp"

#include <tersum/metric/diagonal.hpp>
#include <tersum/metric/factored.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>

#include <cstdint>
#include <vector>

using namespace tersum;

namespace {

template <int Size, feedback Feedback = no_feedback>
using shot =
  two_shot_codec<fixed_chunks<Size>, partial_hadamard<Size>, lloyd_max<2>, Feedback, kept_diagonal>;
template <feedback Feedback>
using in_16_bits = two_shot_codec<fixed_chunks<256>,
                                  partial_hadamard<256>,
                                  lloyd_max<2>,
                                  Feedback,
                                  kept_diagonal_in<bfloat16>>;
template <class Range, feedback Feedback = no_feedback>
using in_lanes = codec<fixed_chunks<256>,
                       partial_hadamard<256>,
                       Range,
                       stochastic_quantizer<4>,
                       saturating_sum<4>,
                       Feedback,
                       kept_diagonal>;

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
  using codec_type = gathered_codec<allocated_chunks<512, 1, 2, 4, 8>,
                                    partial_hadamard<512>,
                                    lloyd_max<8>,
                                    error_feedback,
                                    kept_diagonal>;
  tests::compare_orders<float>(codec_type{.chunker = {.bits = 2}}, 2, true);
}

TEST_CASE("[execute] rows and columns have the same bytes in kernels")
{
  using codec_type = two_shot_codec<fixed_chunks<256>,
                                    partial_hadamard<256>,
                                    lloyd_max<2>,
                                    no_feedback,
                                    kept_factors>;
  tests::compare_buckets<float>(codec_type{});
  using in_sums = codec<fixed_chunks<256>,
                        partial_hadamard<256>,
                        rms_range<tracked_correlation>,
                        stochastic_quantizer<4>,
                        saturating_sum<4>,
                        error_feedback,
                        kept_factors>;
  tests::compare_orders<bfloat16>(in_sums{}, 3, true);
  // All chunks but the last ones are regular. Four neighbours lie in a row of some matrices only.
  std::vector<tensor> tensors;
  std::uint64_t end = 0;
  for (std::uint64_t const columns : {1, 3, 4, 12, 13, 100, 255, 1030, 1500}) {
    tensors.push_back({.rows = 1540 / columns / 4 * 4 + 4, .columns = columns, .offset = end});
    end += tensors.back().size();
  }
  layout const matrices{.coordinates = end, .tensors = tensors, .bypass_vectors = false};
  tests::compare_kernels<codec_type, float>({.codec = {}, .gradient = matrices, .steps = 2});
  tests::compare_kernels<in_sums, float>({.codec = {}, .gradient = matrices, .steps = 2});
}

}  // namespace
