// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranges that follow the last exchange: what they see in a sum, what they lose when gradients jump, and what they survive.

#include "support/loopback_run.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

using gradients = std::vector<std::vector<float>>;

// Of a normal variable of variance 1: how often it is beyond +-a, its mean square inside, and that of what is cut off.
double beyond(double a) { return std::erfc(a / std::numbers::sqrt2); }
double square_inside(double a)
{
  return 1 - beyond(a) - a * std::sqrt(2 / std::numbers::pi) * std::exp(-a * a / 2);
}
double cut_off(double a)
{
  return (1 + a * a) * beyond(a) - a * std::sqrt(2 / std::numbers::pi) * std::exp(-a * a / 2);
}

TEST_CASE("[delayed_range] a clipped normal sum tells how large it is")
{
  delayed_range const range{};
  for (double a = 0.003; a < 4; a *= 1.05) {
    CAPTURE(a);
    double const inside = square_inside(a) / (a * a);
    sum_report const seen{.range    = 0,
                          .limit    = 3,
                          .square   = static_cast<float>(inside + beyond(a)),
                          .inside   = static_cast<float>(inside),
                          .at_limit = static_cast<float>(beyond(a))};
    // Between limits far below it a normal density is flat. It falls by half up to a = 1.15, where a quarter is beyond, so that
    // uniform values would be denser: there the estimate is too large by half. Beyond, what is clipped is missing instead.
    double const over = static_cast<double>(range.next_range(seen)) * a / 3;
    CHECK(over > 0.76);
    CHECK(over < 1.5);
    if (a < 0.1) { CHECK(over == doctest::Approx(1).epsilon(0.01)); }
  }
}

// Normal gradients, all ranks the same, so that the sum's distribution is known; 64 chunks.
gradients equal_gradients(int ranks, double scale, std::uint32_t seed)
{
  std::mt19937 numbers{seed};
  std::normal_distribution<float> normal(0, static_cast<float>(scale));
  std::vector<float> one(65536);
  for (float& v : one) { v = normal(numbers); }
  return gradients(static_cast<std::size_t>(ranks), one);
}

double error_of(std::vector<float> const& got, std::vector<float> const& want)
{
  double lost = 0, energy = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    double const exact = static_cast<double>(want[i]);
    lost += (static_cast<double>(got[i]) - exact) * (static_cast<double>(got[i]) - exact);
    energy += exact * exact;
  }
  return lost / energy;
}

TEST_CASE(
  "[delayed_range] the exchange in which a gradient jumps is clipped, and the next one is not")
{
  // 15 levels of which a rounding loses a quarter of a step squared at most: (2.1 sigma / 7)^2 / 4 = .0225 of the energy. Ranges
  // are up to a tenth too wide, for what rounding adds to the sum, and a hundredth too narrow, for what is clipped beyond 2.1.
  double const rounded = 0.0225 * 1.1 * 1.1;
  double const tails   = cut_off(2.1 * 0.99);
  loopback_run<std::remove_cvref_t<decltype(presets::delayed_sat4)>> run{
    presets::delayed_sat4, {.coordinates = 65536}, 2, 3};
  std::uint32_t seed  = 0;
  auto const exchange = [&](double scale) {
    gradients const in = equal_gradients(2, scale, ++seed);
    return error_of(run.exchange(in)[0], in[0]);
  };
  for (int i = 0; i < 3; ++i) { exchange(1e-3); }
  CHECK(exchange(1e-3) < rounded + tails);
  double scale = 1e-3;
  for (double const jump : {2.0, 10.0, 100.0, 1000.0}) {
    CAPTURE(jump);
    scale *= jump;
    double const lost = exchange(scale);
    CHECK(lost > cut_off(2.1 * 1.1 / jump));
    CHECK(lost < cut_off(2.1 * 0.99 / jump) + rounded);
    // Too wide by half at most, or by what the counts of a few lanes inside vary, but never clipped again by more than a tail.
    CHECK(exchange(scale) < 16 * rounded);
    for (int i = 0; i < 8; ++i) { exchange(scale); }
    CHECK(exchange(scale) < rounded + tails);
  }
  // A gradient that has shrunk is rounded with steps that are too large: of values far below a step only one in step / |x| is not
  // 0, so that the error is step E|x| - x^2. Of a
  // hundredth, 2.6 % of 65536 are not, whose energy varies by 2.4 % from draw to draw; five times that, and the range's tenth.
  for (double const shrunk : {10.0, 100.0}) {
    CAPTURE(shrunk);
    scale /= shrunk;
    double const step = 2.1 / 7 * shrunk;
    double const lost = exchange(scale);
    CHECK(lost > step * std::sqrt(2 / std::numbers::pi) * 0.83 - 1);
    CHECK(lost < step * std::sqrt(2 / std::numbers::pi) * 1.25 - 1);
    for (int i = 0; i < 3; ++i) { exchange(scale); }
    CHECK(exchange(scale) < 0.5);
    for (int i = 0; i < 16; ++i) { exchange(scale); }
    CHECK(exchange(scale) < rounded + tails);
  }
  CHECK(run.record(0).saturated > 0);
}

TEST_CASE(
  "[delayed_range] what is not finite stays in its chunk, on all ranks, and changes no range")
{
  using codec_type = std::remove_cvref_t<decltype(presets::delayed_sat8)>;
  loopback_run<codec_type> run{presets::delayed_sat8, {.coordinates = 65536}, 2, 3};
  for (std::uint32_t i = 0; i < 5; ++i) { run.exchange(equal_gradients(2, 1, i)); }
  gradients in        = equal_gradients(2, 1, 9);
  in[1][1024]         = std::numeric_limits<float>::quiet_NaN();
  in[0][5 * 1024]     = std::numeric_limits<float>::infinity();
  gradients const out = run.exchange(in);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(run.header(rank).last_was_non_finite());
    for (std::size_t i = 0; i < 65536; ++i) {
      bool const spoiled = i / 1024 == 1 || i / 1024 == 5;
      REQUIRE(std::isfinite(out[static_cast<std::size_t>(rank)][i]) != spoiled);
    }
  }
  gradients const next = equal_gradients(2, 1, 10);
  CHECK(error_of(run.exchange(next)[1], next[1]) < 0.001);
  CHECK_FALSE(run.header(0).last_was_non_finite());
}

TEST_CASE("[delayed_range] chunks of zeros stay zeros, and wake up")
{
  using codec_type = std::remove_cvref_t<decltype(presets::delayed_sat4)>;
  loopback_run<codec_type> run{presets::delayed_sat4, {.coordinates = 65536}, 2, 3};
  gradients in;
  for (std::uint32_t step = 0; step < 200; ++step) {
    in = equal_gradients(2, 1, step);
    if (step < 190) {
      for (auto& of_rank : in) { std::fill_n(of_rank.begin(), 2048, 0.0f); }
    }
    gradients const& out = run.exchange(in);
    for (std::size_t i = 0; step < 190 && i < 2048; ++i) { REQUIRE(out[1][i] == 0.0f); }
    if (step == 190) {
      // Their range is the least one, an eighth of the tensor's, so that they are clipped at .26 and not lost.
      std::vector<float> const woken(out[0].begin(), out[0].begin() + 2048);
      std::vector<float> const want(in[0].begin(), in[0].begin() + 2048);
      CHECK(error_of(woken, want) < cut_off(0.25) + 0.05);
    }
  }
  CHECK(error_of(run.exchange(in)[0], in[0]) < 0.03);
}

TEST_CASE("[delayed_range] there is one round, and one that failed can be made again")
{
  auto const plan = presets::delayed_sat4.plan({.coordinates = 5000}, {.size = 2, .rank = 0});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), work(plan.workspace_bytes() / 16 + 1);
  auto const kept    = std::as_writable_bytes(std::span{state});
  auto const scratch = std::as_writable_bytes(std::span{work});
  cpu_executor const exec{};
  REQUIRE(initialize(exec, plan, kept, 1) == status{});
  std::vector<float> const ones(5000, 1.0f);
  std::vector<float> values = ones;
  int rounds                = 0;
  for (int step = 0; step < 3; ++step) {
    values = ones;
    REQUIRE(all_reduce_mean(exec, plan, values, kept, scratch, [&](auto) { ++rounds; }) ==
            status{});
  }
  CHECK(rounds == 3);
  values = ones;
  REQUIRE(encode(exec, plan, values, kept, scratch) == status{});
  auto const once = work;
  REQUIRE(encode(exec, plan, values, kept, scratch) == status{});
  CHECK(std::memcmp(once.data(), work.data(), plan.payload_bytes()) == 0);
}

TEST_CASE("[delayed_range] parameters that cannot be used are refused")
{
  auto const check = [](delayed_range const& range) {
    auto codec  = presets::delayed_sat4;
    codec.range = range;
    return codec.plan({.coordinates = 5000}, {.size = 2, .rank = 0}).check().code;
  };
  CHECK(check({}) == error_code{});
  CHECK(check({.clip = 0}) == error_code::invalid_argument);
  CHECK(check({.first = 0}) == error_code::invalid_argument);
  CHECK(check({.first = std::numeric_limits<float>::infinity()}) == error_code::invalid_argument);
  CHECK(check({.least = 1.5f}) == error_code::invalid_argument);
  CHECK(check({.hold = 1.5f}) == error_code::invalid_argument);
  CHECK(check({.above = 0.5f}) == error_code::invalid_argument);
  CHECK(check({.decay = 0}) == error_code::invalid_argument);
}

}  // namespace
