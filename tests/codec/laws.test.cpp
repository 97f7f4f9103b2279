// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Unbiasedness, determinism, feedback, buckets, plans.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/presets.hpp>

#include <cmath>
#include <cstring>

using namespace tersum;

namespace {

template <class Codec>
using run_of = tests::loopback_run<std::remove_cvref_t<Codec>>;

}  // namespace

TEST_CASE(
  "[codec] codecs that claim it are unbiased in every coordinate, the first of a chunk included")
{
  using exact         = tests::rotated_sums<128,
                                    absmax_range<no_headroom>,
                                    stochastic_quantizer<3, stratified>,
                                    widening_sum<3, 8>>;
  constexpr int world = 2, steps = 4000;
  std::size_t const d = 512;
  auto const in       = tests::normal_gradients(world, d, 3, .01f);
  tests::loopback_run<exact> run{exact{}, layout{d}, world, 77};
  std::vector<double> mean(d);
  double step_bound = 0;
  for (int step = 0; step < steps; ++step) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) { mean[i] += static_cast<double>(out[i]) / steps; }
    auto const* const chunk = reinterpret_cast<chunk_step const*>(run.workspace().data());
    for (std::size_t c = 0; c < d / 128; ++c) {
      // decode is step / (sqrt(128) world).
      step_bound =
        std::max(step_bound, static_cast<double>(chunk[c].decode) * std::sqrt(128.0) * world);
    }
  }
  // A rounding error has variance at most step^2 / 4; the mean of two, of whatever correlation, at most the same; the
  // rotation keeps the average over a chunk. So one coordinate's mean over the steps has a standard deviation of at most
  // step / 2 / sqrt(steps); 512 of them stay below five but for a chance of 3e-4. The dither's own bias is below
  // step / 512 a coordinate, spread by the rotation.
  double const sigma = step_bound / 2 / std::sqrt(steps);
  for (std::size_t i = 0; i < d; ++i) {
    double const truth = (static_cast<double>(in[0][i]) + static_cast<double>(in[1][i])) / world;
    CAPTURE(i);
    CHECK(std::abs(mean[i] - truth) < 5 * sigma);
  }
}

TEST_CASE("[codec] rounding to nearest is biased, which the same test shows")
{
  using nearest =
    tests::plain_sums<128, absmax_range<no_headroom>, nearest_quantizer<3>, widening_sum<3, 8>>;
  std::size_t const d = 512;
  auto const in       = tests::normal_gradients(1, d, 3, .01f);
  tests::loopback_run<nearest> run{nearest{}, layout{d}, 1, 77};
  double worst    = 0;
  auto const& out = run.exchange(in)[0];
  for (std::size_t i = 0; i < d; ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(out[i] - in[0][i])));
  }
  auto const* const chunk = reinterpret_cast<chunk_step const*>(run.workspace().data());
  CHECK(worst > static_cast<double>(chunk[0].decode) * .3);  // it is the same in every step
}

TEST_CASE_TEMPLATE(
  "[codec] threads and instruction sets are without effect, and all ranks end alike",
  Codec,
  std::remove_const_t<decltype(presets::rotated_sat4)>,
  std::remove_const_t<decltype(presets::rotated_sat4_ef)>,
  std::remove_const_t<decltype(presets::thc_wide4)>,
  std::remove_const_t<decltype(presets::fp16)>)
{
  for (int const world : {1, 3}) {
    CAPTURE(world);
    auto const in = tests::normal_gradients(world, 9001, 13, .01f);
    tests::loopback_run<Codec> reference{Codec{}, layout{9001}, world, 5};
    reference.exchange(in);
    auto const want = reference.exchange(in);
    for (auto const& other : want) {
      CHECK(std::memcmp(other.data(), want[0].data(), 9001 * sizeof(float)) == 0);
    }
    for (int const threads : {1, 2, 3}) {
      for (auto const set :
           {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
        if (set > best_instruction_set()) {
          MESSAGE("skipped: this CPU lacks instruction set ", static_cast<int>(set));
          continue;
        }
        tests::loopback_run<Codec> run{
          Codec{}, layout{9001}, world, 5, {.threads = threads, .instructions = set}};
        run.exchange(in);
        CHECK(run.exchange(in)[0] == want[0]);
        CHECK(std::equal(run.state().begin(), run.state().begin() + 64, reference.state().begin()));
      }
    }
  }
}

TEST_CASE(
  "[codec] seeds and steps give fresh randomness, and a copied state continues where it was")
{
  auto const in = tests::normal_gradients(2, 5000, 17, .01f);
  run_of<decltype(presets::rotated_sat4_ef)> a{presets::rotated_sat4_ef, layout{5000}, 2, 1};
  run_of<decltype(presets::rotated_sat4_ef)> b{presets::rotated_sat4_ef, layout{5000}, 2, 2};
  run_of<decltype(presets::rotated_sat4)> c{presets::rotated_sat4, layout{5000}, 2, 1};
  auto const first = a.exchange(in)[0];
  CHECK(first != b.exchange(in)[0]);
  auto const once = c.exchange(in)[0];
  CHECK(once != c.exchange(in)[0]);
  for (int k = 0; k < 2; ++k) {
    std::copy(a.state(k).begin(), a.state(k).end(), b.state(k).begin());
  }
  CHECK(a.exchange(in)[0] == b.exchange(in)[0]);
  CHECK(a.exchange(in)[1] == b.exchange(in)[1]);
}

TEST_CASE(
  "[codec] the order of a reduction is without effect where the wire says that it is associative")
{
  auto const in = tests::normal_gradients(5, 5000, 19, .01f);
  run_of<decltype(presets::thc_wide4_partial)> ring{presets::thc_wide4_partial, layout{5000}, 5, 1};
  run_of<decltype(presets::thc_wide4_partial)> direct{
    presets::thc_wide4_partial, layout{5000}, 5, 1};
  CHECK(ring.exchange(in, reduction_order::ring)[0] ==
        direct.exchange(in, reduction_order::direct)[0]);
  run_of<decltype(presets::thc_sat4)> sat_ring{presets::thc_sat4, layout{5000}, 5, 1};
  run_of<decltype(presets::thc_sat4)> sat_direct{presets::thc_sat4, layout{5000}, 5, 1};
  CHECK(sat_ring.exchange(in, reduction_order::ring)[0] !=
        sat_direct.exchange(in, reduction_order::direct)[0]);
}

TEST_CASE(
  "[codec] feedback keeps exactly what a rank's codes lost, and makes a constant gradient exact over time")
{
  std::size_t const d = 3000;
  auto const in       = tests::normal_gradients(1, d, 29, .01f);
  run_of<decltype(presets::rotated_sat4_ef)> run{presets::rotated_sat4_ef, layout{d}, 1, 3};
  std::vector<double> average(d), before(d);
  int const steps = 50;
  for (int step = 0; step < steps; ++step) {
    auto const& out = run.exchange(in)[0];
    auto const kept = run.residual();
    for (std::size_t i = 0; i < d; ++i) {
      // One rank: the mean is its own decoded codes. Sum and product round once each, to 2^-24 of values below 1.
      double const want = static_cast<double>(in[0][i]) + before[i] - static_cast<double>(out[i]);
      CHECK(static_cast<double>(kept[i]) == doctest::Approx(want).epsilon(1e-4).scale(1e-3));
      before[i] = static_cast<double>(kept[i]);
      average[i] += static_cast<double>(out[i]) / steps;
    }
  }
  // The sum of the estimates telescopes to steps * g + e_0 - e_steps.
  for (std::size_t i = 0; i < d; ++i) {
    CHECK(
      average[i] ==
      doctest::Approx(static_cast<double>(in[0][i]) - before[i] / steps).epsilon(1e-4).scale(1e-3));
  }
}

TEST_CASE("[codec] all_reduce_mean calls once a round, in order, and hands on what goes wrong")
{
  auto const plan = presets::rotated_sat4.plan(layout{3000}, {});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s = std::as_writable_bytes(std::span{state});
  auto const w = std::as_writable_bytes(std::span{workspace});
  std::vector<float> gradient(3000, .5f);
  auto const before = gradient;
  REQUIRE(initialize(cpu_executor{}, plan, s, 1) == status{});
  int calls = 0;
  CHECK(all_reduce_mean(cpu_executor{}, plan, gradient, s, w, [&](auto wire) {
          using op = typename decltype(wire)::op_type;
          CHECK(std::is_same_v<op,
                               std::conditional_t<std::is_same_v<op, saturating_add<4>>,
                                                  saturating_add<4>,
                                                  native_sum<float>>>);
          CHECK(wire.count == (calls == 0 ? 3u : 3u * 128));
          CHECK(decltype(wire)::native == (calls == 0));
          ++calls;
        }) == status{});
  CHECK(calls == 2);
  gradient = before;
  auto const failed =
    all_reduce_mean(cpu_executor{}, plan, gradient, s, w, [](auto) { return 17; });
  CHECK(failed.code == error_code::transport_failed);
  CHECK(failed.native == 17);
  CHECK(gradient == before);
  auto const own = status{error_code::transport_failed, "link down", 3};
  CHECK(all_reduce_mean(cpu_executor{}, plan, gradient, s, w, [&](auto) { return own; }) == own);
  CHECK(gradient == before);
}
