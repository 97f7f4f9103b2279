// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An exchange is a function of state, seed, gradients and order of reduction. Golden digests and random exchanges hold threads and
//! instruction sets together.

#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"
#include "support/same_bytes.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <algorithm>

using namespace tersum;

namespace {

constexpr std::size_t coordinates = 5001;

template <class Codec>
void check_checkpoint(char const* name, Codec const& codec)
{
  CAPTURE(name);
  tests::loopback_run<Codec> whole{codec, layout{coordinates}, 2, 21};
  for (unsigned step = 0; step < 3; ++step) {
    whole.exchange(tests::normal_gradients(2, coordinates, step, .01f));
  }
  // Another process: same plan, a state of any seed, overwritten by the copy.
  tests::loopback_run<Codec> resumed{codec, layout{coordinates}, 2, 99};
  for (int k = 0; k < 2; ++k) {
    auto const saved = whole.state(k).first(whole.plan().state_bytes());
    std::vector<std::byte> const file(saved.begin(), saved.end());
    std::copy(file.begin(), file.end(), resumed.state(k).begin());
  }
  for (unsigned step = 3; step < 6; ++step) {
    auto const in  = tests::normal_gradients(2, coordinates, step, .01f);
    auto const out = resumed.exchange(in);
    CHECK(tests::same_bytes(whole.exchange(in)[1], out[1]));
  }
  CHECK(std::equal(whole.state(1).begin(), whole.state(1).end(), resumed.state(1).begin()));
}

template <class Codec>
std::vector<float> mean_after(
  Codec const& codec, std::uint64_t seed, int steps, reduction_order order, int world = 2)
{
  auto const in = tests::normal_gradients(world, coordinates, 19, .01f);
  tests::loopback_run<Codec> run{codec, layout{coordinates}, world, seed};
  std::vector<float> out;
  for (int step = 0; step < steps; ++step) { out = run.exchange(in, order)[0]; }
  return out;
}

}  // namespace

TEST_CASE("[codec] a copied state resumes a run bit for bit")
{
  check_checkpoint("fp16", presets::fp16);
  check_checkpoint("thc_wide4", presets::thc_wide4);
  check_checkpoint("rotated_sat4_ef", presets::rotated_sat4_ef);
  check_checkpoint("topk_b2_ef", presets::topk_b2_ef);
}

TEST_CASE("[codec] seeds and steps give fresh randomness")
{
  auto const ring = reduction_order::ring;
  for (int const steps : {1, 2}) {
    CAPTURE(steps);
    CHECK_FALSE(tests::same_bytes(mean_after(presets::thc_sat4, 1, steps, ring),
                                  mean_after(presets::thc_sat4, 2, steps, ring)));
    CHECK_FALSE(tests::same_bytes(mean_after(presets::rotated_sat4_ef, 1, steps, ring),
                                  mean_after(presets::rotated_sat4_ef, 2, steps, ring)));
    // The high half of a seed counts too.
    CHECK_FALSE(
      tests::same_bytes(mean_after(presets::thc_wide4, 1, steps, ring),
                        mean_after(presets::thc_wide4, 1 + (std::uint64_t{1} << 32), steps, ring)));
  }
  CHECK_FALSE(tests::same_bytes(mean_after(presets::thc_sat4, 1, 1, ring),
                                mean_after(presets::thc_sat4, 1, 2, ring)));
  CHECK(tests::same_bytes(mean_after(presets::fp16, 1, 1, ring),
                          mean_after(presets::fp16, 2, 2, ring)));
}

TEST_CASE(
  "[codec] the order of a reduction is without effect where the wire says that it is associative")
{
  auto const unlike = [](auto const& codec) {
    return !tests::same_bytes(mean_after(codec, 1, 1, reduction_order::ring, 5),
                              mean_after(codec, 1, 1, reduction_order::direct, 5));
  };
  static_assert(native_sum<std::int8_t>::associative && native_max<float>::associative);
  CHECK_FALSE(unlike(presets::thc_wide4));
  CHECK_FALSE(unlike(presets::thc_wide4_partial));
  CHECK_FALSE(unlike(presets::thc_wide4_unrotated));
  static_assert(!saturating_add<4>::associative && !native_sum<half>::associative);
  CHECK(unlike(presets::thc_sat4));
  CHECK(unlike(presets::fp16));
}
