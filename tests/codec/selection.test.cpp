// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that choose chunks: budgets, zeros, feedback, the same choice on every rank.

#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tersum;
using tests::gradients;

template <class Codec>
std::uint32_t level_of(tests::loopback_run<Codec> const& run, std::uint64_t chunk, int rank = 0)
{
  auto const* const places = reinterpret_cast<std::uint32_t const*>(
    run.workspace(rank).data() + run.plan(rank).offset("places"));
  return places[chunk] & 7u;
}

//! Gradients that are awkward for a choice.
gradients awkward(std::string_view kind, int world, std::size_t d)
{
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  gradients out(static_cast<std::size_t>(world), std::vector<float>(d));
  for (auto& gradient : out) {
    for (std::size_t i = 0; i < d; ++i) {
      if (kind == "normal" || kind == "NaN") { gradient[i] = normal(random); }
      if (kind == "equal norms") { gradient[i] = 0.5f; }
      if (kind == "one hot") { gradient[i] = i == d / 2 ? 3.0f : 0.0f; }
      if (kind == "one chunk") { gradient[i] = i < 64 ? normal(random) : 0.0f; }
      if (kind == "tiny") { gradient[i] = 1e-30f * normal(random); }
      if (kind == "spread") {
        gradient[i] = normal(random) * std::ldexp(1.0f, -static_cast<int>(i / 64 % 24));
      }
    }
  }
  if (kind == "NaN" && d > 0) { out[0][d / 3] = std::numeric_limits<float>::quiet_NaN(); }
  return out;
}

constexpr std::string_view kinds[] = {
  "zeros", "normal", "equal norms", "one hot", "one chunk", "tiny", "spread", "NaN"};

// What chosen chunks use of the payload, and that every rank chose them.
template <class Codec>
void check_budget(Codec const& codec)
{
  for (std::size_t const d : {std::size_t{0},
                              std::size_t{1},
                              std::size_t{Codec::chunk_size - 1},
                              std::size_t{Codec::chunk_size},
                              std::size_t{Codec::chunk_size + 1},
                              std::size_t{10007}}) {
    for (auto const kind : kinds) {
      for (int const world : {1, 3}) {
        CAPTURE(d);
        CAPTURE(kind);
        CAPTURE(world);
        layout const strict{.coordinates = d, .bypass_unpaid = false};
        tests::loopback_run<Codec> run{codec, strict, world, 5};
        auto const& plan = run.plan();
        REQUIRE(static_cast<double>(plan.wire_bytes()) * 8 <=
                static_cast<double>(codec.chunker.bits) * static_cast<double>(d));
        auto const in = awkward(kind, world, d);
        run.exchange(in);
        auto const& out     = run.exchange(in);
        std::uint64_t words = 0;
        auto const rule     = plan.selection_rule();
        for (std::uint64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
          std::uint32_t const level = level_of(run, chunk);
          words += rule.words[level];
          for (int rank = 1; rank < world; ++rank) {
            if (plan.travels()) { REQUIRE(level_of(run, chunk, rank) == level); }
          }
          if (level > 0) { continue; }
          std::size_t const begin = chunk * Codec::chunk_size;
          for (std::size_t i = begin; i < std::min(begin + Codec::chunk_size, d); ++i) {
            if (kind != "NaN") { REQUIRE(out[0][i] == 0.0f); }
          }
        }
        CHECK(words * 4 <= plan.payload_bytes());
        if (!plan.travels()) { continue; }
        for (int rank = 1; rank < world; ++rank) {
          REQUIRE((d == 0 || std::memcmp(out[static_cast<std::size_t>(rank)].data(),
                                         out[0].data(),
                                         d * sizeof(float)) == 0));
        }
        bool const reported = run.header().last_was_non_finite();
        if (agrees<Codec>) { CHECK(reported == (kind == "NaN" && d > 0)); }
        if constexpr (feeds_back<Codec>) {
          for (float const kept : run.residual()) { REQUIRE(std::isfinite(kept)); }
        }
      }
    }
  }
}

template <class T, class Scalar>
constexpr codec<top_chunks<128, Scalar>, no_rotation, cast<T>, in_wire> top_with(float bits)
{
  return {.chunker = {.bits = bits}};
}

TEST_CASE("[selection] the wire never exceeds the budget, and all ranks choose alike")
{
  SUBCASE("topkc_b05") { check_budget(presets::topkc_b05); }
  SUBCASE("topkc_b2_ef") { check_budget(presets::topkc_b2_ef); }
  SUBCASE("topkc_b8") { check_budget(presets::topkc_b8); }
  SUBCASE("topkc with float norms") { check_budget(top_with<float, float>(9)); }
  SUBCASE("allocated_sat_2") { check_budget(presets::allocated_sat_2); }
  SUBCASE("allocated_sat_4_ef") { check_budget(presets::allocated_sat_4_ef); }
}

// Exchanges that follow one another send each chunk once at least in any 2 / share of them, on all ranks alike.
template <class Codec>
void check_turns(Codec const& codec, std::size_t d, gradients const& in)
{
  tests::loopback_run<Codec> run{codec, layout{.coordinates = d}, 2, 5};
  auto const& plan = run.plan();
  auto const rule  = plan.selection_rule();
  auto const paid  = rule.capacity / rule.cost[0];
  REQUIRE(paid < plan.chunks());
  auto const enough = static_cast<int>((2 * plan.chunks() + paid - 1) / paid);
  std::vector<int> since(plan.chunks());
  for (int step = 0; step < 2 * enough; ++step) {
    run.exchange(in);
    std::uint64_t sent = 0;
    for (std::uint64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
      REQUIRE(level_of(run, chunk, 1) == level_of(run, chunk, 0));
      since[chunk] = level_of(run, chunk) > 0 ? 0 : since[chunk] + 1;
      sent += level_of(run, chunk) > 0 ? 1u : 0u;
      REQUIRE(since[chunk] < enough);
    }
    CHECK(sent == paid);
  }
}

TEST_CASE("[selection] chunks that are alike take turns from exchange to exchange")
{
  std::size_t const d = 512 * 99 + 7;
  SUBCASE("widths, all energies weighed alike, 94 % paid")
  {
    auto codec              = presets::allocated_2;
    codec.chunker.weighting = 0;
    codec.chunker.bits      = 1.13f;
    check_turns(codec, d, awkward("spread", 2, d));
  }
  SUBCASE("one width, equal energies")
  {
    check_turns(presets::topkc_b2, 64 * 512, awkward("equal norms", 2, 64 * 512));
  }
}

// A bucket that its budget does not pay for: sums of floats in the order of two ranks, and their half, are exact.
template <class Codec>
void check_unpaid(Codec const& codec, std::vector<tensor> const& tensors = {})
{
  constexpr std::size_t d = 200;
  tests::loopback_run<Codec> run{codec, layout{d, tensors}, 2, 5};
  CHECK(run.plan().all_bypass());
  auto in = awkward("normal", 2, d);
  for (int step = 0; step < 2; ++step) {
    auto const& out = run.exchange(in);
    for (std::size_t i = 0; i < d; ++i) {
      REQUIRE(out[1][i] == (in[0][i] + in[1][i]) / 2);
      REQUIRE(out[0][i] == out[1][i]);
    }
  }
  in[1][7] = std::nanf("");
  run.exchange(in);
  CHECK(run.header(0).last_was_non_finite());
}

TEST_CASE(
  "[selection] a gradient that a budget does not pay for bypasses the codec, unless it is told not to")
{
  check_unpaid(presets::topkc_b05);
  check_unpaid(codec<random_chunks<64>, no_rotation, cast<tersum::half>, in_wire, error_feedback>{
    .chunker = {.bits = 2}});
  check_unpaid(presets::allocated_sat_2,
               {{.rows = 10, .columns = 19}, {.rows = 10, .offset = 190}});

  layout const strict{.coordinates = 100, .bypass_unpaid = false};
  auto const plan = presets::topkc_b05.plan(strict, {.size = 2, .rank = 0});
  CHECK(!plan.travels());
  CHECK(plan.wire_bytes() == 0);
  CHECK(presets::topkc_b05.plan(layout{100000}, {.size = 2, .rank = 0}).travels());
}

TEST_CASE("[selection] plans name what cannot be")
{
  auto const problem = [](auto const& codec, int world) {
    return std::string(codec.plan(layout{1000}, {.size = world, .rank = 0}).check().message);
  };
  codec<top_chunks<64>, no_rotation, cast<half>, in_wire> negative{.chunker = {.bits = -1}};
  CHECK(problem(negative, 2) == "the chunker's bits must be between 0 and 64");
  auto heavy              = presets::allocated_sat_2;
  heavy.chunker.weighting = 2;
  CHECK(problem(heavy, 2) == "the chunker's weighting must be between 0 and 1");
}

TEST_CASE("[selection] a tensor's weight counts like energy, and 0 leaves the bits to others")
{
  // Two matrices of 40 chunks each. Sixteen times the weight has to choose as four times the values do.
  std::uint64_t const size = 256 * 40;
  tensor bucket[]          = {{"first", 256, 40, 0}, {"second", 256, 40, size}};
  auto const plain         = awkward("spread", 2, 2 * size);
  auto scaled              = plain;
  for (auto& gradient : scaled) {
    for (std::size_t i = size; i < gradient.size(); ++i) { gradient[i] *= 4; }
  }
  auto const check = [&](auto const& codec) {
    bucket[1].weight = 1;
    layout const unweighted{.coordinates = 2 * size, .tensors = bucket};
    tests::loopback_run larger{codec, unweighted, 2, 3};
    larger.exchange(scaled);
    tests::loopback_run same{codec, unweighted, 2, 3};
    same.exchange(plain);
    bucket[1].weight = 16;
    tests::loopback_run heavier{codec, unweighted, 2, 3};
    heavier.exchange(plain);
    std::uint64_t const chunks = larger.plan().chunks();
    std::size_t moved          = 0;
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      REQUIRE(level_of(heavier, chunk) == level_of(larger, chunk));
      moved += level_of(heavier, chunk) != level_of(same, chunk) ? 1u : 0u;
    }
    CHECK(moved > 0);
    for (float const nothing : {0.0f, -0.0f}) {
      bucket[1].weight = nothing;
      tests::loopback_run light{codec, unweighted, 2, 3};
      auto const& out = light.exchange(plain);
      for (std::uint64_t chunk = chunks / 2; chunk < chunks; ++chunk) {
        REQUIRE(level_of(light, chunk) == 0);
      }
      CHECK(out[0].back() == 0.0f);
    }
  };
  check(presets::allocated_saturating<stochastic_quantizer<8>>{.chunker = {.bits = 3}});
  auto weighted              = presets::allocated_sat_2;
  weighted.chunker.weighting = 0.25f;
  check(weighted);
  check(presets::topkc_b2);

  bucket[1].weight = -1;
  layout const wrong{.coordinates = 2 * size, .tensors = bucket};
  CHECK(presets::allocated_saturating<stochastic_quantizer<8>>{.chunker = {.bits = 3}}
          .plan(wrong, {})
          .check()
          .message == "the weight of a tensor must be finite and not negative");
}

TEST_CASE("[selection] feedback brings every chunk to travel, and the average to the mean")
{
  // Of a constant gradient the sum of T estimates is T times the mean less the mean residual, whatever was chosen.
  std::size_t const d = 64 * 50;
  auto const in       = awkward("normal", 2, d);
  tests::loopback_run run{presets::topkc_b2_ef, layout{d}, 2, 3};
  std::vector<double> sum(d);
  constexpr int steps = 40;
  for (int step = 0; step < steps; ++step) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) { sum[i] += static_cast<double>(out[i]); }
  }
  for (std::size_t i = 0; i < d; ++i) {
    double const mean = (static_cast<double>(in[0][i]) + static_cast<double>(in[1][i])) / 2;
    double const kept =
      (static_cast<double>(run.residual(0)[i]) + static_cast<double>(run.residual(1)[i])) / 2;
    // Each step rounds residuals and the sum of two halves below 64 to 2^-6 at most.
    REQUIRE(std::abs(sum[i] + kept - steps * mean) <= steps * 0x1p-6);
    REQUIRE(sum[i] != 0.0);
  }
}

TEST_CASE("[selection] TopK takes one vector and says so")
{
  tensor const tensors[] = {{.name = "w", .rows = 4, .columns = 8, .offset = 0}};
  auto const plan =
    presets::topk_b2.plan({.coordinates = 32, .tensors = tensors}, {.size = 2, .rank = 0});
  CHECK(plan.check().code == error_code::unsupported);
}

TEST_CASE("[selection] flat energy costs the norms and nothing else")
{
  // 4 bits and a norm of 16 for 256 coordinates: every chunk can have 4 bits, and equal chunks get equal widths.
  std::size_t const d = 256 * 64;
  auto flat           = presets::allocated_sat_4;
  flat.chunker.bits   = 4 + 16.0f / 256;
  gradients in(4, std::vector<float>(d));
  std::mt19937 random(5);
  for (auto& gradient : in) {
    for (float& value : gradient) { value = random() % 2 == 0 ? 1.0f : -1.0f; }
  }
  tests::loopback_run run{flat, layout{d}, 4, 1};
  CHECK(run.plan().bits_per_coordinate() == 4 + 16.0 / 256);
  run.exchange(in);
  for (std::uint64_t chunk = 0; chunk < 64; ++chunk) { CHECK(level_of(run, chunk) == 2); }
}

}  // namespace
