// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Error feedback keeps exactly what a rank's own codes lost.

#include "support/codecs.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"
#include "support/reference_codec.hpp"
#include "support/staged_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

constexpr double epsilon    = 0x1p-24;
constexpr std::uint64_t key = 11;

// Lanes that hold every sum, and a range that nothing exceeds: only rounding is lost.
using exact_nearest    = tests::rotated_sums<256,
                                          absmax_range<no_headroom>,
                                          nearest_quantizer<4>,
                                          widening_sum<4, 8>,
                                          error_feedback>;
using exact_stochastic = tests::rotated_sums<256,
                                             absmax_range<no_headroom>,
                                             stochastic_quantizer<4, stratified>,
                                             widening_sum<4, 8>,
                                             error_feedback>;

template <class Codec>
void run_step(tests::staged_run<Codec>& run, std::vector<std::vector<float>> const& in)
{
  run.measure(in);
  run.agree(reduction_order::ring);
  run.encode();
  run.reduce(reduction_order::ring);
  run.decode();
}

// The residual of every rank after each of four steps, against gradient + residual - own codes decoded in double.
template <class Codec>
void check_residual(Codec const& codec, std::size_t coordinates, int world)
{
  CAPTURE(world);
  tests::reference_codec<Codec> const model{codec, coordinates, world, key};
  tests::staged_run<Codec> run{codec, layout{coordinates}, world, key};
  auto const in = tests::normal_gradients(world, coordinates, 29);
  for (std::uint64_t step = 0; step < 4; ++step) {
    CAPTURE(step);
    std::vector<std::vector<float>> wanted = in;
    for (int k = 0; k < world; ++k) {
      auto& values = wanted[static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < coordinates; ++i) { values[i] = values[i] + run.residual(k)[i]; }
    }
    run.measure(in);
    run.agree(reduction_order::ring);
    auto const steps = model.derive_steps(run.agreed(0), static_cast<double>(run.record(0).ratio));
    run.encode();
    tests::mismatches wrong;
    for (int k = 0; k < world; ++k) {
      // Codes are integers below 2^7 times a chunk of at most 1024: exact. Twelve roundings in step, product and difference.
      auto const own = model.decode(run.codes(k, 1), steps, step, 1);
      for (std::size_t i = 0; i < coordinates; ++i) {
        double const value = static_cast<double>(wanted[static_cast<std::size_t>(k)][i]);
        double const want  = value - own[i];
        double const got   = static_cast<double>(run.residual(k)[i]);
        double const error = 12 * epsilon * (std::abs(value) + std::abs(own[i])) + 0x1p-40;
        wrong.expect(std::abs(got - want) <= error, true, got, want, k, i);
      }
    }
    CHECK(wrong.report() == "");
    run.reduce(reduction_order::ring);
    run.decode();
  }
}

}  // namespace

TEST_CASE("[feedback] the residual is gradient and residual less the rank's own decoded codes")
{
  check_residual(exact_nearest{}, 1000, 1);
  check_residual(exact_stochastic{}, 1000, 3);
  check_residual(presets::rotated_sat4_ef, 3000, 4);
  check_residual(presets::rotated_sat2_ef, 1024, 2);
}

TEST_CASE("[feedback] when the loss scale changes, what was kept can change its unit")
{
  using codec_type = std::remove_cvref_t<decltype(presets::rotated_sat4_ef)>;
  auto const in    = tests::normal_gradients(2, 3000, 29);
  auto scaled      = in;
  for (auto& gradient : scaled) {
    for (float& value : gradient) { value *= 1024; }
  }
  tests::staged_run<codec_type> run{presets::rotated_sat4_ef, layout{3000}, 2, key};
  tests::staged_run<codec_type> twin{presets::rotated_sat4_ef, layout{3000}, 2, key};
  run_step(run, scaled);
  run_step(twin, in);
  for (int k = 0; k < 2; ++k) {
    CHECK(header_of(run.plan(), run.state(k))->step == 1);
    auto const kept = residuals_of(run.plan(), run.state(k));
    REQUIRE(kept.size() == 3000);
    for (float& value : kept) { value /= 1024; }
  }
  run_step(run, in);
  run_step(twin, in);
  CHECK(run.values(0) == twin.values(0));  // a power of two scales every value exactly
}

TEST_CASE("[feedback] a rank that stays takes its residual into another world")
{
  constexpr std::size_t coordinates = 1000;
  auto const in                     = tests::normal_gradients(3, coordinates, 29);
  tests::staged_run<exact_nearest> before{exact_nearest{}, layout{coordinates}, 3, key};
  run_step(before, in);
  tests::staged_run<exact_nearest> after{exact_nearest{}, layout{coordinates}, 2, key};
  std::vector<double> owed(coordinates);
  for (int k = 0; k < 2; ++k) {
    auto const from = residuals_of(before.plan(), before.state(k)).last(coordinates);
    std::copy(from.begin(),
              from.end(),
              residuals_of(after.plan(), after.state(k)).last(coordinates).begin());
    for (std::size_t i = 0; i < coordinates; ++i) { owed[i] += static_cast<double>(from[i]) / 2; }
  }
  run_step(after, {in[0], in[1]});
  // What is decoded and what is kept make up the gradients and what was kept before, but for a few roundings below 16.
  for (std::size_t i = 0; i < coordinates; ++i) {
    double const given =
      (static_cast<double>(in[0][i]) + static_cast<double>(in[1][i])) / 2 + owed[i];
    double const kept =
      (static_cast<double>(after.residual(0)[i]) + static_cast<double>(after.residual(1)[i])) / 2;
    REQUIRE(std::abs(static_cast<double>(after.values(0)[i]) + kept - given) <= 8 * 16 * epsilon);
  }
}
