// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is wrong with a call is said in a sentence and changes nothing; what is wrong with a gradient stays in its chunk.

#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/collective/all_reduce_mean.hpp>
#include <tersum/presets.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tersum;

namespace {

auto const nothing = [](auto) {};

bool mentions(status const& s, std::string_view word)
{
  return s.code == error_code::invalid_argument && s.message.find(word) != std::string_view::npos;
}

}  // namespace

TEST_CASE("[codec] a wrong argument is named, and no memory is written")
{
  auto const plan = presets::rotated_sat4_ef.plan(layout{3000}, {.size = 2, .rank = 1});
  cpu_executor const exec;
  std::vector<word4> state(plan.state_bytes() / 16 + 2), workspace(plan.workspace_bytes() / 16 + 2);
  auto const s = std::as_writable_bytes(std::span{state});
  auto const w = std::as_writable_bytes(std::span{workspace});
  std::vector<float> gradient(3000, 1.0f);
  REQUIRE(initialize(exec, plan, s, 1) == status{});
  auto const state_before     = state;
  auto const workspace_before = workspace;

  CHECK(mentions(all_reduce_mean(exec, plan, std::span{gradient}.first(2999), s, w, nothing),
                 "gradient.size()"));
  CHECK(mentions(all_reduce_mean(
                   exec, plan, std::span<float>{static_cast<float*>(nullptr), 3000}, s, w, nothing),
                 "gradient is a null"));
  auto* const odd = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(gradient.data()) + 1);
  CHECK(mentions(encode(exec, plan, std::span<float>{odd, 3000}, s, w), "gradient is not aligned"));
  CHECK(mentions(all_reduce_mean(exec, plan, gradient, s.first(plan.state_bytes() - 1), w, nothing),
                 "state is smaller"));
  CHECK(mentions(all_reduce_mean(exec, plan, gradient, s.subspan(4), w, nothing),
                 "state is not aligned"));
  CHECK(mentions(initialize(exec, plan, {static_cast<std::byte*>(nullptr), 1u << 20}, 1),
                 "state is a null"));
  CHECK(
    mentions(all_reduce_mean(exec, plan, gradient, s, w.first(plan.workspace_bytes() - 1), nothing),
             "workspace is smaller"));
  CHECK(mentions(all_reduce_mean(exec, plan, gradient, s, w.subspan(8), nothing),
                 "workspace is not aligned"));
  CHECK(mentions(
    all_reduce_mean(exec, plan, gradient, s, {static_cast<std::byte*>(nullptr), 1u << 20}, nothing),
    "workspace is a null"));
  CHECK(mentions(all_reduce_mean(cpu_executor{.threads = 0}, plan, gradient, s, w, nothing),
                 "threads"));

  CHECK(state == state_before);
  CHECK(workspace == workspace_before);
  CHECK(gradient == std::vector<float>(3000, 1.0f));
}

TEST_CASE("[codec] a state made for another plan is refused")
{
  auto const plan  = presets::rotated_sat4.plan(layout{3000}, {.size = 2, .rank = 0});
  auto const other = presets::rotated_sat4.plan(layout{5000}, {.size = 2, .rank = 0});
  std::vector<word4> state(other.state_bytes() / 16 + 1),
    workspace(other.workspace_bytes() / 16 + 1);
  auto const s = std::as_writable_bytes(std::span{state});
  std::vector<float> gradient(3000);
  REQUIRE(initialize(cpu_executor{}, other, s, 1) == status{});
  CHECK(mentions(
    encode(cpu_executor{}, plan, gradient, s, std::as_writable_bytes(std::span{workspace})),
    "initialize"));
}

TEST_CASE("[codec] a plan says what cannot be exchanged")
{
  layout const d{1000};
  CHECK(mentions(presets::fp16.plan(d, {.size = 0, .rank = 0}).check(), "world.size"));
  CHECK(mentions(presets::fp16.plan(d, {.size = 65535, .rank = 0}).check(), "world.size"));
  CHECK(mentions(presets::fp16.plan(d, {.size = 4, .rank = 4}).check(), "world.rank"));
  CHECK(mentions(presets::fp16.plan(d, {.size = 4, .rank = -1}).check(), "world.rank"));
  // 4-bit codes reach 7: 18 of them fit 127, 19 do not.
  CHECK(presets::thc_wide4.plan(d, {.size = 18, .rank = 0}).check().ok());
  CHECK(presets::thc_wide4.plan(d, {.size = 19, .rank = 0}).check().code ==
        error_code::world_too_large);
  // Only saturating sums know what spread suits the world.
  using exact        = codec<fixed_chunks<128>,
                      no_rotation,
                      rms_range<literal>,
                      stochastic_quantizer<4>,
                      widening_sum<4, 8>>;
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  for (float const spread : {0.0f, -1.0f, nan, std::numeric_limits<float>::infinity()}) {
    CAPTURE(spread);
    CHECK(mentions(exact{.range = {.spread = spread}}.plan(d, {}).check(), "spread"));
    auto saturating         = presets::rotated_sat4;
    saturating.range.spread = spread;
    CHECK(saturating.plan(d, {}).check().ok() == (spread == 0));
  }
  tensor const gap[] = {{"a", 10, 10, 0}, {"b", 10, 10, 101}};
  CHECK(mentions(presets::fp16.plan(layout{.coordinates = 201, .tensors = gap}, {}).check(),
                 "layout.tensors"));
  tensor const part[] = {{"a", 10, 10, 0}};
  CHECK(mentions(presets::fp16.plan(layout{.coordinates = 101, .tensors = part}, {}).check(),
                 "layout.tensors"));
}

TEST_CASE("[codec] sizes beyond 2^31 are arithmetic like others")
{
  std::uint64_t const d = (std::uint64_t{1} << 33) + 1;
  auto const plan       = presets::rotated_sat4.plan(layout{d}, {.size = 8, .rank = 0});
  CHECK(plan.check().ok());
  CHECK(plan.chunks() == (std::uint64_t{1} << 23) + 1);
  CHECK(plan.payload_bytes() == plan.chunks() * 512);
  CHECK(plan.agreed_bytes() == plan.chunks() * 4);
}

TEST_CASE("[codec] values that are not finite are flagged on every rank and stay in their chunk")
{
  std::size_t const d = 5000;
  for (float const bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    CAPTURE(bad);
    auto const clean = tests::normal_gradients(3, d, 7);
    auto dirty       = clean;
    dirty[1][2000]   = bad;  // the second of five chunks
    using codec_type = std::remove_cvref_t<decltype(presets::rotated_sat4_ef)>;
    tests::loopback_run<codec_type> run{presets::rotated_sat4_ef, layout{d}, 3, 5};
    tests::loopback_run<codec_type> twin{presets::rotated_sat4_ef, layout{d}, 3, 5};
    run.exchange(clean);
    twin.exchange(clean);
    std::vector<float> const before{run.residual(0).begin(), run.residual(0).end()};
    auto const got  = run.exchange(dirty);
    auto const want = twin.exchange(clean);
    for (int k = 0; k < 3; ++k) {
      CHECK(run.header(k).last_was_non_finite());
      CHECK_FALSE(twin.header(k).last_was_non_finite());
    }
    for (std::size_t i = 0; i < d; ++i) {
      bool const poisoned = i >= 1024 && i < 2048;
      CAPTURE(i);
      REQUIRE((poisoned ? std::isnan(got[0][i]) : got[0][i] == want[0][i]));
    }
    CHECK(std::equal(before.begin(), before.end(), run.residual(0).begin()));
    for (float const value : run.exchange(clean)[2]) { REQUIRE(std::isfinite(value)); }
    CHECK_FALSE(run.header(2).last_was_non_finite());
  }
}

TEST_CASE("[codec] a cast whose sum overflows is flagged")
{
  using codec_type = std::remove_cvref_t<decltype(presets::fp16)>;
  tests::loopback_run<codec_type> run{presets::fp16, layout{10}, 2, 5};
  run.exchange({std::vector<float>(10, 4e4f), std::vector<float>(10, 4e4f)});
  CHECK(run.header(0).last_was_non_finite());
  CHECK(run.header(1).last_was_non_finite());
  run.exchange({std::vector<float>(10, 1.0f), std::vector<float>(10, 3.0f)});
  CHECK_FALSE(run.header(0).last_was_non_finite());
}

TEST_CASE("[codec] zero chunks, empty gradients, single coordinates and tails are exchanged")
{
  using codec_type = std::remove_cvref_t<decltype(presets::rotated_sat4)>;
  for (std::size_t const d :
       {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{1025}, std::size_t{7919}}) {
    CAPTURE(d);
    auto in = tests::normal_gradients(2, d, 11);
    for (auto& gradient : in) {
      std::fill_n(gradient.begin(), std::min<std::size_t>(d, 1024), 0.0f);
    }
    tests::loopback_run<codec_type> run{presets::rotated_sat4, layout{d}, 2, 5};
    for (int step = 0; step < 3; ++step) {
      auto const& out = run.exchange(in);
      for (std::size_t i = 0; i < std::min<std::size_t>(d, 1024); ++i) {
        REQUIRE(out[0][i] == 0.0f);
      }
      for (float const value : out[1]) { REQUIRE(std::isfinite(value)); }
    }
    CHECK(run.header().step == 3);
  }
}

TEST_CASE("[codec] magnitudes far from one are exchanged as well as others")
{
  using codec_type = std::remove_cvref_t<decltype(presets::rotated_sat8)>;
  auto const unit  = tests::normal_gradients(2, 4096, 3);
  tests::loopback_run<codec_type> plain{presets::rotated_sat8, layout{4096}, 2, 5};
  double const reference = tests::nmse(unit, plain.exchange(unit)[0]);
  for (int const exponent : {-50, 50}) {
    CAPTURE(exponent);
    auto scaled = unit;
    for (auto& gradient : scaled) {
      for (float& value : gradient) { value = std::ldexp(value, exponent); }
    }
    tests::loopback_run<codec_type> run{presets::rotated_sat8, layout{4096}, 2, 5};
    // Powers of two scale every intermediate value exactly.
    CHECK(tests::nmse(scaled, run.exchange(scaled)[0]) == doctest::Approx(reference).epsilon(1e-6));
  }
  // Squares that underflow leave a chunk without a step, squares that overflow poison it.
  auto tiny = unit, huge = unit;
  for (int k = 0; k < 2; ++k) {
    for (float& value : tiny[static_cast<std::size_t>(k)]) { value = std::ldexp(value, -120); }
    for (float& value : huge[static_cast<std::size_t>(k)]) { value = std::ldexp(value, 100); }
  }
  tests::loopback_run<codec_type> run{presets::rotated_sat8, layout{4096}, 2, 5};
  for (float const value : run.exchange(tiny)[0]) { REQUIRE(value == 0.0f); }
  CHECK_FALSE(run.header().last_was_non_finite());
  for (float const value : run.exchange(huge)[0]) { REQUIRE(std::isnan(value)); }
  CHECK(run.header().last_was_non_finite());
}
