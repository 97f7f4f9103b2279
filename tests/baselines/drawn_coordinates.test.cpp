// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Random coordinates and levels by the norm of a tensor, against the formulas of their sources in double.

#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

using namespace tersum;

namespace {

double mean_of(std::vector<std::vector<float>> const& in, std::size_t i)
{
  double sum = 0;
  for (auto const& rank : in) { sum += static_cast<double>(rank[i]); }
  return sum / static_cast<double>(in.size());
}

// Numbers of halves: 2^-11 of what is summed, for the values and for each sum.
constexpr double close = 1.0 / 512;

TEST_CASE(
  "[drawn] one of so many neighbours travels, each as often, and the mean of all draws is that of the gradient")
{
  constexpr int ranks = 3, steps = 2000, stride = 8;
  constexpr std::size_t d = 8 * 24 + 3;  // the last three neighbours are a group
  auto const in           = tests::normal_gradients<std::mt19937_64>(ranks, d, 13);
  tests::loopback_run run{presets::randomk_b2, layout{d}, ranks, 5};
  CHECK(run.plan().payload_bytes() == 2 * 25);
  std::vector<int> sent(d);
  std::set<std::vector<bool>> draws;
  double lost = 0, want = 0;
  for (std::size_t i = 0; i < d; ++i) {
    // Of a coordinate x that is sent with probability 1 / w as w x: (w - 1) x^2.
    want += (i < d - 3 ? stride - 1 : 2) * mean_of(in, i) * mean_of(in, i);
  }
  for (int step = 0; step < steps; ++step) {
    auto const out = run.exchange(in);
    REQUIRE(out[0] == out[2]);
    std::vector<bool> draw(d);
    for (std::size_t begin = 0; begin < d; begin += stride) {
      std::size_t const end = std::min(d, begin + stride);
      int travelled         = 0;
      for (std::size_t i = begin; i < end; ++i) {
        double const mean = mean_of(in, i), got = static_cast<double>(out[0][i]);
        lost += (got - mean) * (got - mean) / steps;
        if (out[0][i] == 0) { continue; }
        ++travelled;
        ++sent[i];
        draw[i]            = true;
        double largest     = 0;
        double const width = static_cast<double>(end - begin);
        for (auto const& rank : in) { largest += std::abs(static_cast<double>(rank[i])); }
        REQUIRE(std::abs(got - width * mean) <= close * width * largest);
      }
      REQUIRE(travelled == 1);
    }
    draws.insert(draw);
  }
  CHECK(draws.size() == steps);  // fresh in every step
  for (std::size_t i = 0; i < d; ++i) {
    CAPTURE(i);
    double const share = i < d - 3 ? 1.0 / stride : 1.0 / 3;
    // Six spreads of a count.
    CHECK(std::abs(sent[i] - steps * share) < 6 * std::sqrt(steps * share * (1 - share)));
  }
  // 50,000 groups; squares of a spread of some 2 of their mean.
  CHECK(lost == doctest::Approx(want).epsilon(.05));
}

// One rank: the mean is what was sent, the others are zeros, and the residual is the rest.
template <class Wire, class Codec>
void check_every_group(Codec const& codec, std::size_t d, instruction_set instructions)
{
  CAPTURE(codec.chunker.stride);
  constexpr std::uint64_t seed = 5;
  tests::loopback_run<Codec> run{
    codec, layout{d}, 1, seed, {.threads = 2, .instructions = instructions}};
  std::vector<float> kept(d);
  int wrong         = 0;
  auto const expect = [&](bool holds) { wrong += holds ? 0 : 1; };
  for (std::uint64_t step = 0; step < 2; ++step) {
    auto in = tests::normal_gradients<std::mt19937_64>(1, d, 13);
    if (step == 1) { in[0][d / 2] = std::numeric_limits<float>::infinity(); }
    auto const& out         = run.exchange(in)[0];
    std::uint64_t const key = sign_key(step, seed);
    for (std::size_t j = 0; j * codec.chunker.stride < d; ++j) {
      std::size_t const drawn = codec.chunker.place(j, d, key);
      std::size_t const begin = j * codec.chunker.stride;
      std::size_t const end   = std::min<std::size_t>(begin + codec.chunker.stride, d);
      expect(drawn >= begin && drawn < end);
      for (std::size_t i = begin; i < end; ++i) {
        float const whole = in[0][i] + kept[i];
        bool const sends  = i == drawn && std::isfinite(whole);
        float const sent  = sends ? to_float(from_float<Wire>(whole)) : 0.0f;
        float const times = codec.chunker.scaled ? static_cast<float>(end - begin) : 1.0f;
        expect(i == drawn && !sends ? !std::isfinite(out[i]) : out[i] == sent * times);
        if constexpr (feeds_back<Codec>) {
          if (std::isfinite(whole)) { kept[i] = whole - sent; }
          expect(run.residual()[i] == kept[i]);
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE(
  "[drawn] groups of any width, many of them or few, are drawn, sent and kept as each of them says")
{
  for (auto const set : {instruction_set::baseline, best_instruction_set()}) {
    for (std::uint32_t const stride : {1u, 3u, 8u, 700u, 5000u}) {
      check_every_group<half>(
        drawn_coordinates_codec<half>{.chunker = {.stride = stride, .scaled = true}}, 12'001, set);
      check_every_group<half>(
        drawn_coordinates_codec<half, error_feedback>{.chunker = {.stride = stride}}, 12'001, set);
    }
  }
}

TEST_CASE("[drawn] ranks that draw otherwise have another fingerprint")
{
  auto codec            = presets::randomk_b2;
  auto const plan_of    = [&] { return codec.plan(layout{100}, {.size = 2, .rank = 0}); };
  std::uint64_t const a = fingerprint(plan_of());
  codec.chunker.scaled  = false;
  std::uint64_t const b = fingerprint(plan_of());
  codec.chunker.stride  = 9;
  CHECK(a != b);
  CHECK(b != fingerprint(plan_of()));
}

TEST_CASE("[drawn] the plan says what is wrong")
{
  auto codec        = presets::randomk_b2_ef;
  world const ranks = {.size = 2, .rank = 0};
  CHECK(codec.plan(layout{100}, ranks).check() == status{});
  codec.chunker.scaled = true;
  CHECK(codec.plan(layout{100}, ranks).check().code == error_code::invalid_argument);
  codec.chunker = {.stride = 0};
  CHECK(codec.plan(layout{100}, ranks).check().code == error_code::invalid_argument);
}

}  // namespace
