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

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <cstdint>
#include <set>
#include <span>

using namespace tersum;

namespace {

template <class Rotator, class Range, class Feedback, int Size = 256>
using in_lanes = codec<fixed_chunks<Size>,
                       Rotator,
                       summed_codes<Range, stochastic_quantizer<4>, saturating_sum<4>>,
                       in_wire,
                       Feedback>;

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

// Rotators that differ in nothing but what they do.
struct backwards : signed_permutation {
  constexpr description describe() const { return {"backwards"}; }
  TERSUM_HOST_DEVICE void forward(auto const& g, auto& x, auto& y, rotation_key const& key) const
  {
    signed_permutation::backward(g, x, y, key);
  }
  TERSUM_HOST_DEVICE void backward(auto const& g, auto& x, auto& y, rotation_key const& key) const
  {
    signed_permutation::forward(g, x, y, key);
  }
};

TEST_CASE("[conformance] plans tell policies of users apart")
{
  using tracked      = rms_range<tracked_correlation>;
  auto const of      = [](auto const& codec) { return fingerprint(codec.plan(layout{5000}, {})); };
  auto const permute = of(in_lanes<signed_permutation, tracked, no_feedback>{});
  CHECK(permute == of(in_lanes<signed_permutation, tracked, no_feedback>{}));
  CHECK(permute != of(in_lanes<backwards, tracked, no_feedback>{}));
  CHECK(permute != of(in_lanes<no_rotation, tracked, no_feedback>{}));
  using forgets = in_lanes<signed_permutation, mean_magnitude, decaying_feedback>;
  CHECK(of(forgets{}) != of(forgets{.feedback = {.decay = 0.5f}}));
  CHECK(of(forgets{}) != of(in_lanes<signed_permutation, tracked, decaying_feedback>{}));
  auto const in = [&]<metric Metric>(Metric const& units) {
    return of(
      tests::rotated_codes<256, lloyd_max<2>, two_shot, no_feedback, Metric>{.metric = units});
  };
  std::set<std::uint64_t> const metrics{in(plain_metric{}),
                                        in(given_diagonal{}),
                                        in(given_diagonal{.floor = 0.5f}),
                                        in(kept_diagonal{}),
                                        in(kept_diagonal_in<bfloat16>{}),
                                        in(kept_diagonal{.prior = 9}),
                                        in(kept_diagonal{.horizon = 1000}),
                                        in(largest_mean{})};
  CHECK(metrics.size() == 8);
}

}  // namespace
