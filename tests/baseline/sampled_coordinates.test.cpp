// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! TopK above a threshold from a sample: the coordinates that sorting chooses by the definition, whatever the gradient.

#include "support/loopback_run.hpp"

#include <tersum/baseline/catalogue.hpp>
#include <tersum/baseline/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace {

using namespace tersum;

constexpr std::uint64_t seed = 5;

float made(std::string_view kind, std::size_t i, std::mt19937& random)
{
  std::normal_distribution<float> normal;
  float const drawn = normal(random);
  if (kind == "zeros") { return 0.0f; }
  if (kind == "equal") { return i % 2 == 0 ? 0.5f : -0.5f; }
  if (kind == "few values") { return std::round(drawn); }
  if (kind == "few above zero") { return i % 61 == 3 ? drawn : 0.0f; }
  if (kind == "largest at the end") { return static_cast<float>(i); }
  if (kind == "NaN") { return i % 997 == 0 ? std::numeric_limits<float>::quiet_NaN() : drawn; }
  return drawn;
}

constexpr std::string_view kinds[] = {
  "zeros", "normal", "equal", "few values", "few above zero", "largest at the end", "NaN"};

// A magnitude in double; what is not finite counts as infinite.
double magnitude_of(float value)
{
  return std::isfinite(value) ? std::abs(static_cast<double>(value))
                              : std::numeric_limits<double>::infinity();
}

// Of the coordinates whose number `ties` has so many are taken, from the one on that the golden ratio says.
void take_in_turn(std::vector<std::size_t>& chosen,
                  std::vector<std::size_t> const& ties,
                  std::size_t wanted,
                  int turn)
{
  constexpr double golden = 0.61803398874989484820;
  double const part       = std::fmod(turn * golden, 1.0);
  auto const first        = static_cast<std::size_t>(part * static_cast<double>(ties.size()));
  for (std::size_t k = 0; k < std::min(wanted, ties.size()); ++k) {
    chosen.push_back(ties[(first + k) % ties.size()]);
  }
}

struct choice {
  std::vector<std::size_t> indices;  // ascending
  bool is_short;                     // fewer reach the threshold than there are places
};

// The definition, by sorting.
choice choose(std::vector<float> const& gradient, std::size_t wanted, std::size_t stride, int step)
{
  std::size_t const d     = gradient.size();
  std::uint64_t const key = sign_key(static_cast<std::uint64_t>(step), seed);
  std::vector<double> sample, all;
  for (float const g : gradient) { all.push_back(magnitude_of(g)); }
  for (std::size_t begin = 0; begin < d; begin += stride) {
    std::size_t const width = std::min(stride, d - begin);
    double const drawn      = std::ldexp(sign_bits(begin / stride, key), -32);
    sample.push_back(all[begin + static_cast<std::size_t>(drawn * static_cast<double>(width))]);
  }
  std::sort(sample.begin(), sample.end(), std::greater<>{});
  double const share =
    static_cast<double>(wanted * sample.size()) / static_cast<double>(d);  // exact below 2^53
  double const threshold = sample[static_cast<std::size_t>(std::ceil(share)) - 1];
  std::vector<std::size_t> above, below;
  for (std::size_t i = 0; i < d; ++i) { (all[i] >= threshold ? above : below).push_back(i); }
  choice made{{}, above.size() < wanted};
  if (made.is_short) {
    made.indices = above;
    take_in_turn(made.indices, below, wanted - above.size(), step);
  } else {
    std::vector<double> order;
    for (std::size_t const i : above) { order.push_back(all[i]); }
    std::sort(order.begin(), order.end(), std::greater<>{});
    std::vector<std::size_t> ties;
    for (std::size_t const i : above) {
      if (all[i] > order[wanted - 1]) { made.indices.push_back(i); }
      if (all[i] == order[wanted - 1]) { ties.push_back(i); }
    }
    take_in_turn(made.indices, ties, wanted - made.indices.size(), step);
  }
  std::sort(made.indices.begin(), made.indices.end());
  return made;
}

template <class Codec>
std::vector<std::byte> part_of(tests::loopback_run<Codec> const& run)
{
  auto const& plan = run.plan();
  auto const part  = run.workspace().subspan(plan.payload_offset(), plan.part_bytes());
  return {part.begin(), part.end()};
}

TEST_CASE("[sampled_coordinates] those travel that sorting chooses by the definition")
{
  int is_short = 0, is_full = 0;
  for (std::size_t const bits : {2u, 20u}) {
    for (std::size_t const d : {0u, 1u, 47u, 48u, 99u, 100u, 101u, 10007u}) {
      for (std::uint32_t const stride : {1u, 7u, 100u, 20000u}) {
        for (auto const kind : kinds) {
          CAPTURE(bits);
          CAPTURE(d);
          CAPTURE(stride);
          CAPTURE(kind);
          auto codec           = presets::topk_sampled_b2;
          codec.chunker.bits   = static_cast<float>(bits);
          codec.chunker.stride = stride;
          tests::loopback_run run{codec, layout{d}, 1, seed};
          std::mt19937 random(7);
          std::vector<float> in(d);
          for (std::size_t i = 0; i < d; ++i) { in[i] = made(kind, i, random); }
          for (int step = 0; step < 3; ++step) {
            auto const& out = run.exchange({in})[0];
            auto const k    = static_cast<std::size_t>(run.plan().chosen());
            REQUIRE(k == bits * d / 96 * 2);
            if (k == 0) {
              REQUIRE(out == std::vector<float>(d));
              continue;
            }
            choice const want = choose(in, k, stride, step);
            (want.is_short ? is_short : is_full) += 1;
            auto const part = part_of(run);
            std::vector<std::uint32_t> index(k);
            std::vector<half> value(k);
            std::memcpy(index.data(), part.data(), k * 4);
            std::memcpy(value.data(), part.data() + k * 4, k * 2);
            REQUIRE(std::equal(index.begin(), index.end(), want.indices.begin()));
            bool is_known = true;
            for (std::size_t n = 0; n < k; ++n) {
              float const sent = in[index[n]];
              REQUIRE(value[n].bits == to_half(sent).bits);
              is_known = is_known && std::isfinite(sent);
            }
            REQUIRE(run.header().last_was_non_finite() == !is_known);
          }
        }
      }
    }
  }
  // Both ways to choose are tried.
  CHECK(is_short > 20);
  CHECK(is_full > 20);
}

TEST_CASE("[sampled_coordinates] where all are sampled the bytes are those of TopK")
{
  std::size_t const d = 5003;
  std::mt19937 random(3);
  std::vector<std::vector<float>> in(2, std::vector<float>(d));
  for (auto& gradient : in) {
    for (std::size_t i = 0; i < d; ++i) { gradient[i] = made("few values", i, random); }
  }
  auto codec           = presets::topk_sampled_b2;
  codec.chunker.stride = 1;
  tests::loopback_run sampled{codec, layout{d}, 2, seed};
  tests::loopback_run exact{presets::topk_b2, layout{d}, 2, seed};
  for (int step = 0; step < 3; ++step) {
    REQUIRE(sampled.exchange(in) == exact.exchange(in));
    REQUIRE(part_of(sampled) == part_of(exact));
  }
}

TEST_CASE("[sampled_coordinates] feedback keeps what did not travel, and most coordinates travel")
{
  // Of a constant gradient the sum of T estimates is T times the gradient less the residual. What half loses is exact in float and
  // is kept. Sums of a gradient and a residual stay below 60 * 4.2 < 256, where each is rounded by 2^-17 at most.
  std::size_t const d = 4801;
  std::mt19937 random(9);
  std::vector<float> in(d);
  for (std::size_t i = 0; i < d; ++i) { in[i] = made("normal", i, random); }
  tests::loopback_run run{
    sampled_coordinates_codec<error_feedback>{.chunker = {{.bits = 2}}}, layout{d}, 1, seed};
  std::vector<double> sum(d);
  constexpr int steps = 60;
  for (int step = 0; step < steps; ++step) {
    auto const& out = run.exchange({in})[0];
    for (std::size_t i = 0; i < d; ++i) { sum[i] += static_cast<double>(out[i]); }
  }
  std::size_t sent = 0;
  for (std::size_t i = 0; i < d; ++i) {
    double const kept = static_cast<double>(run.residual()[i]);
    REQUIRE(std::abs(sum[i] + kept - steps * static_cast<double>(in[i])) <= steps * 0x1p-17);
    sent += sum[i] != 0.0 ? 1u : 0u;
  }
  CHECK(sent > d / 2);
}

TEST_CASE("[sampled_coordinates] a stride of zero is refused")
{
  auto codec           = presets::topk_sampled_b2;
  codec.chunker.stride = 0;
  CHECK(codec.plan(layout{1000}, {}).check() ==
        status{error_code::invalid_argument, "the chunker's stride must be at least 1"});
  tensor const matrix{.rows = 10, .columns = 100};
  CHECK(presets::topk_sampled_b2.plan({.coordinates = 1000, .tensors = {&matrix, 1}}, {})
          .check()
          .code == error_code::unsupported);
}

}  // namespace
