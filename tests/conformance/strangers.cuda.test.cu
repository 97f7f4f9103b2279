// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies that users of the library write, and those of the library by their plain forms alone, make the CPU's bytes on CUDA: each
//! with one of every other role. The pairs of strangers with all policies run on threads and as kernels of the emulator only.

#include "../../examples/your_own/cosine_transform.hpp"
#include "../../examples/your_own/dead_zone_quantizer.hpp"
#include "../../examples/your_own/decaying_feedback.hpp"
#include "../../examples/your_own/even_codes.hpp"
#include "../../examples/your_own/every_kth_chunk.hpp"
#include "../../examples/your_own/largest_mean.hpp"
#include "../../examples/your_own/mean_in_halves.hpp"
#include "../../examples/your_own/mean_magnitude.hpp"
#include "../../examples/your_own/partitioned_sum.hpp"
#include "../../examples/your_own/signed_permutation.hpp"
#include "conformance/plain_forms.hpp"
#include "support/codecs.hpp"
#include "support/compare_executors.cuh"

#include <tersum/range/absmax_range.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using tests::in_lanes;

namespace {

template <class Codec>
void compare_strangers(Codec const& codec)
{
  tests::compare_executors<Codec, float>({.codec      = codec,
                                          .gradient   = {.coordinates = 3 * Codec::chunk_size + 77},
                                          .world      = 2,
                                          .steps      = 2,
                                          .misaligned = true,
                                          .non_finite_step = 0});
}

TEST_CASE("[conformance] plain forms make the bytes of the CPU on CUDA")
{
  compare_strangers(in_lanes<tests::plain_rotator<partial_hadamard<256>>,
                             tests::plain_range<absmax_range<fixed_headroom>>,
                             tests::plain_feedback>{});
  compare_strangers(in_lanes<tests::plain_rotator<partial_hadamard<2048>>,
                             rms_range<tracked_correlation>,
                             no_feedback,
                             2048>{});
}

TEST_CASE("[conformance] policies of users make the bytes of the CPU on CUDA")
{
  compare_strangers(in_lanes<signed_permutation, mean_magnitude, decaying_feedback>{});
  compare_strangers(
    in_lanes<cosine_transform<128>, rms_range<tracked_correlation>, error_feedback, 128>{});
  compare_strangers(
    codec<fixed_chunks<256>, signed_permutation, even_codes, two_shot, decayed_feedback>{});
  compare_strangers(codec<fixed_chunks<256>, no_rotation, cast<bfloat16>, mean_in_halves>{});
  using coder = summed_codes<absmax_range<>, dead_zone_quantizer<8>, partitioned_sum<16>>;
  compare_strangers(codec<fixed_chunks<256>, partial_hadamard<256>, coder, in_wire>{});
  compare_strangers(tests::rotated_sums<256,
                                        rms_range<tracked_correlation>,
                                        stochastic_quantizer<4>,
                                        saturating_sum<4>,
                                        averaged_feedback,
                                        largest_mean>{});
  compare_strangers(
    codec<every_kth_chunk<128, 2>, no_rotation, cast<tersum::half>, in_wire, decaying_feedback>{});
}

}  // namespace
