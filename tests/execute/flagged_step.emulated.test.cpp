// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A flagged step leaves every residual as it was, also by a bypassing tensor alone, on the CPU executor and in kernel bodies.

#include "support/emulated_executor.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/exchange/wires.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

constexpr std::size_t coordinates = 96 * 64 + 7;
constexpr tensor bucket_of_two[]  = {{"matrix", 96, 64, 0}, {"bias", 1, 7, 96 * 64}};
constexpr layout gradient_of_two{
  .coordinates = coordinates, .tensors = bucket_of_two, .bypass_vectors = true};
constexpr int ranks = 2;

//! All that feedback of all ranks keeps, the owners' part too.
template <class Run>
std::vector<float> residuals(Run const& run)
{
  std::vector<float> out;
  for (int k = 0; k < ranks; ++k) {
    auto const kept = residuals_of(run.plan(k), run.state(k));
    out.insert(out.end(), kept.begin(), kept.end());
  }
  return out;
}

template <class Executor, class Codec>
void check_steps(Codec const& codec)
{
  auto const clean = normal_gradients(ranks, coordinates, 7);
  // A NaN of one rank, and finite values of both whose sum is beyond float32.
  auto with_nan = clean, overflowing = clean;
  with_nan[1][coordinates - 3] = std::numeric_limits<float>::quiet_NaN();
  for (auto& values : overflowing) { values[coordinates - 3] = 3e38f; }

  loopback_run<Codec, float, Executor> run{codec, gradient_of_two, ranks, 3};
  run.exchange(clean);
  auto const before = residuals(run);
  REQUIRE(std::any_of(before.begin(), before.end(), [](float v) { return v != 0; }));
  for (auto const& bad : {with_nan, overflowing}) {
    auto const mean = run.exchange(bad)[0];
    CHECK_FALSE(std::isfinite(mean[coordinates - 3]));
    CHECK(std::isfinite(mean[0]));
    for (int k = 0; k < ranks; ++k) { CHECK(run.header(k).last_was_non_finite()); }
    CHECK(residuals(run) == before);
  }
  run.exchange(clean);
  CHECK_FALSE(run.header().last_was_non_finite());
  CHECK(residuals(run) != before);
}

template <class Codec>
void check(Codec const& codec)
{
  SUBCASE("on the CPU") { check_steps<cpu_executor>(codec); }
  SUBCASE("in the kernel bodies") { check_steps<emulated_executor>(codec); }
}

TEST_CASE("[kernels] where only a tensor that bypasses is not finite residuals stay as they were")
{
  SUBCASE("sums of codes") { check(presets::rotated_sat4_ef); }
  SUBCASE("chosen chunks") { check(presets::topkc_b2_ef); }
  SUBCASE("two shots") { check(presets::two_shot_4_ef); }
}

}  // namespace
