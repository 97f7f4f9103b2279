// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals drain where 16-bit elements travel. All presets with feedback keep the same law beside their golden digests.

#include "support/check_draining.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

namespace {

template <class Wire>
constexpr low_rank_codec<low_rank<1>, cast<Wire>> factors{};

TEST_CASE("[feedback] residuals beyond the largest half drain")
{
  tests::check_draining<float>(presets::topkc_b2_ef, 1e5f, 1.9e5f);
  tests::check_draining<float>(presets::topkc_b2_ef, 1e5f, 1.9e5f, true);
  tests::check_draining<float>(
    codec<random_chunks<64>, no_rotation, cast<tersum::half>, in_wire, error_feedback>{
      .chunker = {.bits = 2}},
    1e5f,
    1.9e5f,
    true);
  tests::check_draining<float>(presets::topk_b2_ef, 1e5f, 1.9e5f, true);
}

TEST_CASE("[feedback] residuals of halves drain, whose sums are beyond the largest half")
{
  tests::check_draining<half>(presets::topkc_b2_ef, 4e4f, 5.7e4f, true, 3);
}

TEST_CASE("[feedback] residuals of factors in half drain, and such factors have sums")
{
  tests::check_draining<float>(factors<half>, 3e3f, 5.7e3f, true, 40);
  tests::check_draining<float>(factors<half>, 3e3f, 5.7e3f, false, 40);
}

TEST_CASE("[feedback] what cannot be sent leaves the residual as it was")
{
  tests::check_draining<float>(presets::topkc_b2_ef, 1e6f, 1e7f, true, 3);
  tests::check_draining<float>(
    codec<random_chunks<64>, no_rotation, cast<tersum::half>, in_wire, error_feedback>{
      .chunker = {.bits = 2}},
    1e6f,
    1e30f,
    true,
    3);
}

TEST_CASE("[feedback] residuals of factors drain after gradients whose products overflow")
{
  tests::check_draining<float>(presets::powersgd_r4, 2e37f, 4e37f, false, 40);
  tests::check_draining<float>(presets::alternating_iteration<1>{}, 7e35f, 7e36f, true, 10);
  tests::check_draining<float>(presets::alternating_iteration<1>{}, 1e37f, 1e38f, false, 1);
}

template <class Run>
std::vector<float> residuals_of(Run const& run, int world)
{
  std::vector<float> all;
  for (int rank = 0; rank < world; ++rank) {
    all.insert(all.end(), run.residual(rank).begin(), run.residual(rank).end());
  }
  return all;
}

// One rank has a spike in step 2, and the gradients of the last half of the steps are zeros. A step is flagged and changes no
// residual, or what the ranks held has become their mean and what they hold, and the mean is no more than they held.
template <class Wire, low_rank_schedule Schedule>
void check_spike(int world, float spike)
{
  constexpr std::uint64_t rows = 31, columns = 45, size = rows * columns;
  constexpr tensor matrix[] = {{"matrix", rows, columns, 0}};
  using codec_type          = low_rank_codec<low_rank<2>, cast<Wire>, Schedule>;
  constexpr double unit     = std::is_same_v<Wire, float> ? 0x1p-24 : 0x1p-8;
  tests::loopback_run<codec_type> run{{}, {.coordinates = size, .tensors = matrix}, world, 5};
  std::vector<std::vector<float>> in(static_cast<std::size_t>(world), std::vector<float>(size));
  CAPTURE(world);
  CAPTURE(spike);
  std::uint32_t random = 1;
  for (int step = 0; step < 40; ++step) {
    CAPTURE(step);
    std::vector<double> held(size), kept(size), sizes(size);
    for (int rank = 0; rank < world; ++rank) {
      auto& values = in[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < size; ++i) {
        random    = random * 1664525u + 1013904223u;
        values[i] = step < 20 ? static_cast<float>(random >> 8) * 0x1p-23f - 1 : 0.0f;
        if (step == 2 && rank == world / 2 && i == 500) { values[i] = spike; }
        double const all = static_cast<double>(values[i]) + run.residual(rank)[i];
        held[i] += all;
        sizes[i] += std::abs(all);
      }
    }
    auto const before = residuals_of(run, world);
    auto const& mean  = run.exchange(in)[0];
    if (run.header().last_was_non_finite()) {
      CHECK((step == 2 && std::abs(spike) >= 0x1p40f));
      CHECK(residuals_of(run, world) == before);
      continue;
    }
    double of_held = 0, of_mean = 0, of_sizes = 0;
    for (std::size_t i = 0; i < size; ++i) {
      for (int rank = 0; rank < world; ++rank) { kept[i] += run.residual(rank)[i]; }
      double const sent = static_cast<double>(mean[i]) * world;
      // Each rank rounds a sum and a difference, of which none is above what it held and the mean.
      REQUIRE(std::abs(held[i] - sent - kept[i]) <= 0x1p-22 * (sizes[i] + std::abs(sent)));
      of_held += held[i] * held[i];
      of_mean += sent * sent;
      of_sizes += sizes[i] * sizes[i];
    }
    // The mean is a projection, whose products of up to 45 terms and sums of ranks are rounded.
    double const rounding = (columns + static_cast<double>(world)) * unit * 2;
    CHECK(std::sqrt(of_mean) <= std::sqrt(of_held) + rounding * std::sqrt(of_sizes));
  }
}

TEST_CASE_TEMPLATE("[feedback] what factors leave of one rank's spike is its own, or is flagged",
                   Wire,
                   float,
                   bfloat16)
{
  for (int const world : {1, 2, 5}) {
    for (float const spike : {1e6f, 0x1.8p39f, -1e13f, 1e15f, 1e25f, 1e30f, 3e38f}) {
      check_spike<Wire, low_rank_schedule::paired>(world, spike);
      check_spike<Wire, low_rank_schedule::alternating>(world, spike);
    }
  }
}

using top_bfloat16s =
  codec<random_chunks<64>, no_rotation, cast<bfloat16>, in_wire, error_feedback>;

TEST_CASE("[feedback] residuals near the largest bfloat16 drain")
{
  tests::check_draining<float>(top_bfloat16s{.chunker = {.bits = 2}}, 1e38f, 3.4e38f, false, 3);
}

}  // namespace
