// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rotations of whole tensors: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/tersum.hpp>
#include <tersum_baselines/full_hadamard.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Range, class Quantizer, class Reducer, int Size>
using fully_rotated =
  codec<fixed_chunks<Size>, full_hadamard, summed_codes<Range, Quantizer, Reducer>, in_wire>;

TEST_CASE("[kernels] thc_wide4 equals the CPU executor")
{
  compare_all<float>(presets::thc_wide4);
  compare_sizes<half>(presets::thc_wide4);
  compare_buckets<bfloat16>(presets::thc_wide4);
}

TEST_CASE("[kernels] whole rotations of every number of passes")
{
  using narrow =
    fully_rotated<rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>, 128>;
  // 2^7 to 2^17 coordinates: the last pass has one to five levels.
  for (unsigned log = 7; log <= 17; ++log) {
    compare_kernels<narrow, float>({.gradient = {.coordinates = std::uint64_t{1} << log},
                                    .world    = 1 + static_cast<int>(log % 2),
                                    .steps    = log < 12 ? 2 : 1});
  }
  compare_orders<float>(narrow{});
}

TEST_CASE_TEMPLATE(
  "[kernels] whole rotations with other ranges and chunks",
  Codec,
  fully_rotated<absmax_range<tracked_correlation>, stochastic_quantizer<2>, saturating_sum<2>, 256>,
  fully_rotated<global_range<tracked_correlation, bfloat16>,
                nearest_quantizer<8>,
                saturating_sum<8>,
                2048>,
  fully_rotated<absmax_range<no_headroom, bfloat16>,
                stochastic_quantizer<8, independent>,
                guard_lanes<16>,
                512>)
{
  compare_sizes<float>(Codec{});
  compare_orders<float>(Codec{}, 2, true);
}

}  // namespace
