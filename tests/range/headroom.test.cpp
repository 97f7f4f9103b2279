// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The factor between the range of one rank and that of the sum.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

constexpr int worlds[]   = {1, 2, 3, 4, 8, 17, 64, 1000, 65535};
constexpr float ratios[] = {0.0f, 0.3f, 1.0f, 1.7f, 2.0f, 4.0f, 100.0f, 1e30f};

TEST_CASE("[headroom] literal maps one rank's range to the lane, whatever the world")
{
  for (int const world : worlds) {
    for (float const ratio : ratios) { CHECK(tersum::no_headroom{}.factor(world, ratio) == 1.0f); }
  }
}

TEST_CASE("[headroom] fixed_headroom is its multiple, or the square root of the world")
{
  for (int const world : worlds) {
    CAPTURE(world);
    for (float const ratio : ratios) {
      CHECK(tersum::fixed_headroom{}.factor(world, ratio) ==
            static_cast<float>(std::sqrt(static_cast<double>(world))));
      CHECK(tersum::fixed_headroom{.multiple = 2.5f}.factor(world, ratio) == 2.5f);
    }
  }
}

TEST_CASE(
  "[headroom] tracked_correlation is the measured ratio with its margin, between 1 and the world")
{
  for (float const margin : {1.0f, 1.1f, 2.0f}) {
    for (int const world : worlds) {
      for (float const ratio : ratios) {
        CAPTURE(margin);
        CAPTURE(world);
        CAPTURE(ratio);
        float const factor = tersum::tracked_correlation{.margin = margin}.factor(world, ratio);
        CHECK(factor == std::clamp(margin * ratio, 1.0f, static_cast<float>(world)));
      }
      // Before the first exchange the factor is the world, or as wide as it may be.
      for (float const widest : {1.5f, 8.0f, 1e6f}) {
        tersum::tracked_correlation const tracked{.margin = margin};
        double const want  = std::fmin(static_cast<double>(world), static_cast<double>(widest));
        float const factor = tracked.factor(world, tracked.first_ratio(world, widest));
        CHECK(static_cast<double>(factor) == doctest::Approx(want).epsilon(1e-6));
      }
    }
  }
  CHECK(tersum::tracked_correlation{}.factor(8, std::numeric_limits<float>::infinity()) == 8.0f);
}

TEST_CASE("[headroom] what is tracked stays where it was when a gradient is not finite")
{
  // The norm of the tensor is then infinite, and what was decoded of its other chunks no share of it.
  using magnitudes = tersum::tests::plain_sums<128,
                                               tersum::absmax_range<tersum::tracked_correlation>,
                                               tersum::nearest_quantizer<4>,
                                               tersum::saturating_sum<4>>;
  tersum::tests::loopback_run<magnitudes> run{magnitudes{}, tersum::layout{300}, 2, 1};
  std::vector<std::vector<float>> in(2, std::vector<float>(300));
  for (std::size_t i = 0; i < 300; ++i) { in[0][i] = in[1][i] = i % 2 == 0 ? 1.0f : -1.0f; }
  run.exchange(in);
  float const before = run.record(0).ratio;
  CHECK(before > 1.0f);
  in[1][200] = std::numeric_limits<float>::quiet_NaN();
  run.exchange(in);
  for (int rank = 0; rank < 2; ++rank) { CHECK(run.record(0, rank).ratio == before); }
}

TEST_CASE(
  "[headroom] what is tracked of a tensor stays where it was when one of its chunks is not finite")
{
  // Its other chunks, and other tensors, are decoded as ever; the latter are tracked on.
  std::size_t const d = 4000;  // two tensors of two chunks
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> in(4, std::vector<float>(d));
  for (std::size_t i = 0; i < d; ++i) {
    float const value = normal(random);
    for (auto& gradient : in) { gradient[i] = value; }
  }
  std::vector<tersum::tensor> const tensors{{.rows = 2, .columns = 1000, .offset = 0},
                                            {.rows = 2, .columns = 1000, .offset = 2000}};
  tersum::layout const layout{.coordinates = d, .tensors = tensors};
  tersum::tests::loopback_run run{tersum::presets::rotated_sat4, layout, 4, 1};
  run.exchange(in);
  float const before[] = {run.record(0).ratio, run.record(1).ratio};
  for (float& value : in[0]) { value = -value; }  // ranks agree less than before
  in[2][1900] = std::numeric_limits<float>::quiet_NaN();
  run.exchange(in);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(run.header(rank).last_was_non_finite());
    CHECK(run.record(0, rank).ratio == before[0]);
    CHECK(run.record(1, rank).ratio < 0.8f * before[1]);
  }
  in[2][1900] = in[1][1900];
  run.exchange(in);
  CHECK(run.record(0).ratio < 0.8f * before[0]);
}

}  // namespace
