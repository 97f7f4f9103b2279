// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What feedback sends in halves has a sum of all ranks that is a half, and what it does not send it keeps.

#include "support/loopback_run.hpp"

#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace tersum;

namespace {

// The sums of halves in float, each rounded to a half, in a ring and in a tree.
TEST_CASE("[feedback] no sum of the largest summands leaves the halves, in any number of ranks")
{
  for (int world = 1; world <= 2048; ++world) {
    float const largest = detail::largest_summand<half>(world);
    REQUIRE(to_float(to_half(largest)) == largest);
    REQUIRE(largest * static_cast<float>(world) <= 65504.0f);
    if (world <= 1024) { REQUIRE(largest * static_cast<float>(world) > 65504.0f * .49f); }
    std::vector<float> sums{
      0.0f, largest};  // of so many ranks, the largest of all orders in which two partial sums meet
    for (int ranks = 2; ranks <= world; ++ranks) {
      float const one  = to_float(to_half(sums.back() + largest));
      auto const part  = static_cast<std::size_t>(ranks / 2);
      auto const other = static_cast<std::size_t>(ranks) - part;
      sums.push_back(std::fmax(one, to_float(to_half(sums[part] + sums[other]))));
    }
    REQUIRE(sums.back() <= 65504.0f);
  }
}

struct outcome {
  int flagged          = 0;
  std::size_t infinite = 0;  // values of means and residuals that are not finite
  double arrived       = 0;  // the sum of the means of coordinate 5 over all steps
};

// Equal gradients of +-`magnitude` on all ranks, the first `loud` steps with a spike at coordinate 5.
template <class Codec>
outcome exchange_equal(Codec const& codec, int world, float magnitude, float spike, int steps)
{
  constexpr std::size_t size = 4096;
  tests::loopback_run<Codec, float> run{codec, layout{.coordinates = size}, world, 5};
  outcome all;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> one(size);
    for (std::size_t i = 0; i < size; ++i) { one[i] = i % 3 == 0 ? magnitude : -magnitude; }
    if (step == 0) { one[5] = spike; }
    std::vector<std::vector<float>> const in(static_cast<std::size_t>(world), one);
    auto const mean = run.exchange(in);
    all.flagged += run.header().last_was_non_finite() ? 1 : 0;
    for (float const value : mean[0]) { all.infinite += std::isfinite(value) ? 0u : 1u; }
    all.arrived += static_cast<double>(mean[0][5]);
    for (int rank = 0; rank < world; ++rank) {
      for (float const kept : run.residual(rank)) { all.infinite += std::isfinite(kept) ? 0u : 1u; }
    }
  }
  return all;
}

template <class Codec>
void check_sums(Codec const& codec, double kept_of_sent)
{
  // Residuals of so many ranks add up to more than a half holds long before one of them does.
  for (float const magnitude : {16.0f, 40.0f, 100.0f}) {
    CAPTURE(magnitude);
    outcome const all = exchange_equal(codec, 64, magnitude, -magnitude, 30);
    CHECK(all.flagged == 0);
    CHECK(all.infinite == 0);
  }
  // A spike arrives bit by bit, whole.
  outcome const spike = exchange_equal(codec, 2, 1.0f, 1e6f, 1500);
  CHECK(spike.flagged == 0);
  CHECK(spike.infinite == 0);
  CHECK(std::abs(spike.arrived - (1e6 - 1499)) < kept_of_sent);
}

TEST_CASE("[feedback] sums of chosen chunks in half, with decay too, stay finite among many ranks")
{
  check_sums(presets::topkc_b2_ef, 64);
  codec<top_chunks<64>, no_rotation, cast<half>, in_wire, decayed_feedback> const codec{
    .chunker = {.bits = 2}, .feedback = {.decay = 1}};
  check_sums(codec, 64);
}

TEST_CASE("[feedback] sums of random chunks and coordinates in half stay finite among many ranks")
{
  // A coordinate waits up to some hundreds of steps for its turn.
  check_sums(
    codec<random_chunks<64>, no_rotation, cast<half>, in_wire, error_feedback>{
      .chunker = {.bits = 2}},
    1000);
  check_sums(presets::randomk_b2_ef, 1000);
}

TEST_CASE("[feedback] sums of chosen chunks in half and in a metric stay finite among many ranks")
{
  codec<top_chunks<128>, no_rotation, cast<half>, in_wire, error_feedback, kept_diagonal> const
    codec{.chunker = {.bits = 2}};
  for (float const magnitude : {16.0f, 40.0f, 1e5f}) {
    outcome const all = exchange_equal(codec, 64, magnitude, -magnitude, 30);
    CHECK(all.flagged == 0);
    CHECK(all.infinite == 0);
  }
}

}  // namespace
