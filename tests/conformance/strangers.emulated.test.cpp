// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies that users of the library write exchange the same bytes on the CPU and in kernels.

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
#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <span>

using namespace tersum;
using tests::in_lanes;

namespace {

template <class Codec>
void compare_strangers(Codec const& codec,
                       std::span<emulator::thread_order const> orders = emulator::thread_orders)
{
  tests::compare_kernels<Codec, float>({.codec      = codec,
                                        .gradient   = {.coordinates = 2 * Codec::chunk_size + 77},
                                        .steps      = 2,
                                        .misaligned = true,
                                        .non_finite_step = 0},
                                       orders);
}

TEST_CASE("[conformance] rotators of users make the same bytes in kernels")
{
  using tracked = rms_range<tracked_correlation>;
  compare_strangers(in_lanes<signed_permutation, tracked, error_feedback>{});
  compare_strangers(in_lanes<signed_permutation, tracked, no_feedback, 2048>{});
  compare_strangers(in_lanes<cosine_transform<128>, tracked, error_feedback, 128>{});
  compare_strangers(
    codec<fixed_chunks<256>, cosine_transform<256>, scaled_codes<lloyd_max<4>>, two_shot>{},
    tests::forward_only);
}

TEST_CASE("[conformance] policies of users go with each other and make the same bytes in kernels")
{
  using coder = summed_codes<mean_magnitude, dead_zone_quantizer<4>, partitioned_sum<8>>;
  compare_strangers(
    codec<every_kth_chunk<128, 2>, signed_permutation, coder, in_wire, decaying_feedback>{});
  compare_strangers(codec<fixed_chunks<128>,
                          signed_permutation,
                          coder,
                          in_wire,
                          decaying_feedback,
                          largest_mean>{});
  compare_strangers(
    codec<fixed_chunks<256>, signed_permutation, even_codes, mean_in_halves, decaying_feedback>{},
    tests::forward_only);
  using blocks = scaled_codes<group_absmax<4, 32>>;
  compare_strangers(codec<fixed_chunks<512>, no_rotation, blocks, mean_in_halves, error_feedback>{},
                    tests::forward_only);
}

}  // namespace
