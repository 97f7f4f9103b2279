// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What examples/compare_codecs measures of an estimate: errors of the mean and of Adam's update, zeros.

#include "../../examples/compare_codecs/cpu_device.hpp"
#include "../../examples/compare_codecs/errors.cpp"
#include "../../examples/compare_codecs/measured_estimates.cpp"
#include "../../examples/compare_codecs/run_exchange.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace {

namespace cc    = compare_codecs;
using doubles   = std::vector<double>;
using gradients = std::vector<std::vector<float>>;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Sizes that differ from coordinate to coordinate by powers of ten, as those of gradients do.
gradients random_gradients(std::size_t ranks, std::size_t coordinates, std::mt19937& random)
{
  std::normal_distribution<float> normal;
  gradients result(ranks, std::vector<float>(coordinates));
  for (std::size_t i = 0; i < coordinates; ++i) {
    float const size = std::pow(10.0f, static_cast<float>(i % 7) - 6);
    float const mean = i % 5 == 0 ? 0 : normal(random);
    for (auto& gradient : result) { gradient[i] = size * (mean + normal(random)); }
  }
  return result;
}

// The error of Adam's update as docs/tuning.md states it, one coordinate after the other.
double update_error_by_definition(gradients const& ranks,
                                  std::vector<doubles> const& steps,
                                  doubles const& estimate)
{
  using real   = long double;
  auto const n = static_cast<real>(ranks.size());
  real wrong = 0, right = 0;
  for (std::size_t i = 0; i < estimate.size(); ++i) {
    real sum = 0, squares = 0, of_codec = 0;
    for (auto const& rank : ranks) {
      sum += static_cast<real>(rank[i]);
      squares += static_cast<real>(rank[i]) * static_cast<real>(rank[i]);
    }
    real const mean  = sum / n;
    real const noise = (squares - n * mean * mean) / (n - 1) / n;
    real const drift = mean * mean - noise > 0 ? mean * mean - noise : 0;
    for (auto const& step : steps) {
      real const error = static_cast<real>(step[i]) - mean;
      of_codec += error * error / static_cast<real>(steps.size());
    }
    if (squares == 0) { continue; }
    real const root    = std::sqrt(drift + noise + of_codec);
    real const exact   = mean / root;
    real const changed = static_cast<real>(estimate[i]) / root;
    wrong += (changed - exact) * (changed - exact);
    right += exact * exact;
  }
  return static_cast<double>(wrong / right);
}

}  // namespace

TEST_CASE("[compare_codecs] the mean of ranks has the variance of a rank over their number")
{
  auto const two = cc::average_ranks(gradients{{1, 2, 0, -4}, {3, 2, 0, 4}});
  CHECK(two.mean == doubles{2, 2, 0, 0});
  CHECK(two.variance == doubles{1, 0, 0, 16});
  auto const three = cc::average_ranks(gradients{{0}, {3}, {6}});
  CHECK(three.mean == doubles{3});
  CHECK(three.variance == doubles{3});
  auto const equal = cc::average_ranks(gradients(3, {0.1f}));
  CHECK(equal.mean == doubles{0.1f});
  CHECK(equal.variance == doubles{0});
  auto const one = cc::average_ranks(gradients{{1, 2}});
  CHECK(one.mean == doubles{1, 2});
  CHECK(one.variance.empty());
}

TEST_CASE("[compare_codecs] a second moment is the larger of mean^2 and s^2 / n, and the codec's")
{
  cc::exact_mean const exact{.mean = {3, -1, 0, 0}, .variance = {4, 2, 5, 0}};
  CHECK(cc::second_moments(exact, doubles{0, 0, 0, 0}) == doubles{9, 2, 5, 0});
  // Where all ranks have zeros there is none, whatever the codec does.
  CHECK(cc::second_moments(exact, doubles{1, 2, 3, 4}) == doubles{10, 4, 8, 0});
  CHECK(cc::second_moments({.mean = {3}, .variance = {}}, doubles{1}).empty());
}

TEST_CASE("[compare_codecs] second moments are those of many samples, or less than twice as large")
{
  // Of two ranks of pure noise mean^2 and s^2 / 2 are squares of two independent normal numbers of one variance, 1/2 here. With
  // the angle a of that point the larger is r^2 (1 + |cos 2a|) / 2, and E|cos 2a| is 2 / pi.
  constexpr double pi = 3.14159265358979323846;
  std::mt19937 random{7};
  std::normal_distribution<float> normal;
  constexpr std::size_t coordinates = 200000;
  for (float const mean : {0.0f, 20.0f}) {
    CAPTURE(mean);
    gradients ranks(2, std::vector<float>(coordinates));
    for (auto& rank : ranks) {
      for (float& value : rank) { value = mean + normal(random); }
    }
    double sum = 0;
    for (double const moment : cc::second_moments(cc::average_ranks(ranks), doubles(coordinates))) {
      sum += moment;
    }
    double const expected = mean == 0 ? (1 + 2 / pi) / 2 : mean * mean + .5;
    // A moment varies by less than 1 around .82, and by 2 mean sqrt(1/2) around mean^2: this is five deviations of the average.
    double const deviation = mean == 0 ? 1 : 2 * mean;
    CHECK(std::abs(sum / coordinates - expected) < 5 * deviation / std::sqrt(coordinates));
  }
}

TEST_CASE("[compare_codecs] the error of the update counts each coordinate in its own unit")
{
  doubles const mean{2, 1, 0, 0}, estimate{1, 0, 1, 7}, moments{4, 2, 1, 0};
  // (1/4 + 1/2 + 1) / (4/4 + 1/2); the last coordinate has no moment.
  CHECK(cc::update_error_of(mean, estimate, moments) == doctest::Approx(7.0 / 6).epsilon(1e-15));
  CHECK(cc::update_error_of(mean, mean, moments) == 0);
  CHECK(cc::update_error_of(mean, doubles{0, 0, 0, 7}, moments) == 1);
  CHECK(std::isnan(cc::update_error_of(mean, estimate, {})));
  CHECK(cc::update_error_of(doubles{0, 0}, doubles{0, 1}, doubles{1, 1}) == infinity);
  CHECK(cc::update_error_of(doubles{0, 0}, doubles{0, 1}, doubles{1, 0}) == 0);
}

TEST_CASE("[compare_codecs] errors of the mean are relative to its energy")
{
  CHECK(cc::error_of(doubles{3, 4}, doubles{3, 3}) == doctest::Approx(.04).epsilon(1e-15));
  CHECK(cc::error_of(doubles{0, 0}, doubles{0, 0}) == 0);
  CHECK(cc::error_of(doubles{0, 0}, doubles{0, 1}) == infinity);
}

TEST_CASE("[compare_codecs] the error of the update is that of its definition")
{
  std::mt19937 random{20241118};
  std::normal_distribution<double> normal;
  for (std::size_t const n : {2u, 3u, 8u}) {
    CAPTURE(n);
    constexpr std::size_t coordinates = 1000;
    auto ranks                        = random_gradients(n, coordinates, random);
    for (auto& rank : ranks) { rank[17] = 0; }
    auto const exact = cc::average_ranks(ranks);
    std::vector<doubles> steps(3, doubles(coordinates));
    doubles lost(coordinates), average(coordinates);
    for (auto& step : steps) {
      for (std::size_t i = 0; i < coordinates; ++i) {
        step[i] = i % 3 == 0 ? 0 : exact.mean[i] + 1e-3 * normal(random);
        lost[i] += (step[i] - exact.mean[i]) * (step[i] - exact.mean[i]) / 3;
        average[i] += step[i] / 3;
      }
    }
    auto const moments = cc::second_moments(exact, lost);
    // The reference subtracts squares of which some are 1e4 times as large as their difference, in numbers of 64 bits.
    for (auto const& estimate : {steps.back(), average}) {
      CHECK(cc::update_error_of(exact.mean, estimate, moments) ==
            doctest::Approx(update_error_by_definition(ranks, steps, estimate)).epsilon(1e-12));
    }
  }
}

TEST_CASE("[compare_codecs] zeros are counted where the mean has none, in all and by tensor")
{
  doubles const mean{1, 0, -2, 3, 5}, estimate{0, 0, -0.0, 3, 1e-300}, average{1, 0, 0, 0, 0};
  CHECK(cc::zeros_of(mean, estimate) == 2.0 / 5);
  CHECK(cc::zeros_of(mean, average) == 3.0 / 5);
  std::vector<cc::layer> const layers{{"a", 1, 1, 0}, {"b", 2, 1, 1}, {"c", 1, 2, 3}};
  auto const shares = cc::zeros_by_tensor(mean, estimate, average, layers);
  REQUIRE(shares.size() == 3);
  CHECK(shares[0].tensor == "a");
  CHECK(shares[0].fraction == 1);
  CHECK(shares[0].fraction_of_mean == 0);
  CHECK(shares[1].tensor == "b");
  CHECK(shares[1].fraction == 1.0 / 2);
  CHECK(shares[1].fraction_of_mean == 1.0 / 2);
  CHECK(shares[2].fraction == 0);
  CHECK(shares[2].fraction_of_mean == 1);
  CHECK(cc::zeros_by_tensor(mean, estimate, average, {}).empty());
}

TEST_CASE("[compare_codecs] a run measures what halves lose")
{
  // A half holds 1e-9 as zero and the others exactly. Means are -1, 2, 1e-9 and 0, their variances 4, 0, 0 and 0, so that second
  // moments are 4, 4, 2e-18 and none: (1/2) / (1/4 + 1 + 1/2).
  gradients const ranks{{1, 2, 1e-9f, 0}, {-3, 2, 1e-9f, 0}};
  std::vector<cc::layer> const layers{{"a", 1, 2, 0}, {"b", 1, 2, 2}};
  auto const run = cc::run_exchange(cc::cpu_device{.executor = {.threads = 1}},
                                    tersum::presets::fp16,
                                    ranks,
                                    layers,
                                    {.ranks = 2, .steps = 2});
  REQUIRE(run.error == "");
  auto const& m = run.value;
  CHECK(m.nmse == doctest::Approx(1e-18 / 5).epsilon(1e-6));
  CHECK(m.update_error == doctest::Approx(2.0 / 7).epsilon(1e-12));
  CHECK(m.update_error_of_mean == doctest::Approx(2.0 / 7).epsilon(1e-12));
  CHECK(m.zeros_fraction == .25);
  CHECK(m.zeros_fraction_of_mean == .25);
  REQUIRE(m.zeros_by_tensor.size() == 2);
  CHECK(m.zeros_by_tensor[0].fraction == 0);
  CHECK(m.zeros_by_tensor[1].fraction == .5);
  CHECK(m.zeros_by_tensor[1].fraction_of_mean == .5);

  auto const alone = cc::run_exchange(cc::cpu_device{.executor = {.threads = 1}},
                                      tersum::presets::fp16,
                                      {ranks[0]},
                                      {},
                                      {.ranks = 1, .steps = 2});
  REQUIRE(alone.error == "");
  CHECK(std::isnan(alone.value.update_error));
  CHECK(std::isnan(alone.value.update_error_of_mean));
  CHECK(alone.value.zeros_fraction == .25);
  CHECK(alone.value.zeros_by_tensor.empty());
}

TEST_CASE("[compare_codecs] the average of steps loses less than the last, and has fewer zeros")
{
  // Chunks that are left out are zeros, and with feedback are sent later.
  std::mt19937 random{5};
  auto const ranks = random_gradients(2, 8192, random);
  std::vector<cc::layer> const layers{{"all", 1, 8192, 0}};
  auto const run = cc::run_exchange(cc::cpu_device{.executor = {.threads = 1}},
                                    tersum::presets::topkc_b2_ef,
                                    ranks,
                                    layers,
                                    {.ranks = 2, .steps = 6});
  REQUIRE(run.error == "");
  auto const& m = run.value;
  CHECK(m.update_error_of_mean < m.update_error);
  CHECK(m.zeros_fraction_of_mean < m.zeros_fraction);
  CHECK(m.zeros_fraction > .5);
  REQUIRE(m.zeros_by_tensor.size() == 1);
  CHECK(m.zeros_by_tensor[0].fraction == m.zeros_fraction);
  CHECK(m.zeros_by_tensor[0].fraction_of_mean == m.zeros_fraction_of_mean);
}
