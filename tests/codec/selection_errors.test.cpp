// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What codecs that choose chunks lose: as much as computed directly, on real gradients and on normal ones.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;
using tests::gradients;

// NMSE of the last of so many steps.
template <class Codec>
double error_of(Codec const& codec, gradients const& in, int steps = 10)
{
  tests::loopback_run<Codec> run{
    codec, layout{in[0].size()}, static_cast<int>(in.size()), 20241118};
  double lost = 0, all = 0;
  gradients const* out = nullptr;
  for (int step = 0; step < steps; ++step) { out = &run.exchange(in); }
  for (std::size_t i = 0; i < in[0].size(); ++i) {
    double mean = 0;
    for (auto const& gradient : in) {
      mean += static_cast<double>(gradient[i]) / static_cast<double>(in.size());
    }
    double const off = static_cast<double>((*out)[0][i]) - mean;
    lost += off * off;
    all += mean * mean;
  }
  return lost / all;
}

// TopKC in double: the chunks with the largest sums of squared norms, everything else zero.
double direct_error(gradients const& in, std::size_t size, std::size_t chosen)
{
  std::size_t const d = in[0].size(), chunks = (d + size - 1) / size;
  std::vector<double> norm(chunks), energy(chunks);
  for (std::size_t i = 0; i < d; ++i) {
    double mean = 0;
    for (auto const& gradient : in) {
      norm[i / size] += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
      mean += static_cast<double>(gradient[i]) / static_cast<double>(in.size());
    }
    energy[i / size] += mean * mean;
  }
  std::vector<std::size_t> order(chunks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
    order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return norm[a] > norm[b]; });
  double lost = 0;
  for (std::size_t k = chosen; k < chunks; ++k) { lost += energy[order[k]]; }
  return lost / std::accumulate(energy.begin(), energy.end(), 0.0);
}

TEST_CASE("[selection_errors] TopKC equals a direct computation on the sample gradients")
{
  for (std::string const set : {"step20", "step300"}) {
    CAPTURE(set);
    auto const in = tests::sample_gradients(set);
    auto const d  = in[0].size();
    auto const expected =
      set == "step20" ? std::vector{.092, .034, .0036} : std::vector{.51, .33, .076};
    std::size_t row  = 0;
    auto const check = [&]<class Exact>(auto const& codec, Exact exact, std::size_t size) {
      float const bits = codec.chunker.bits;
      CAPTURE(bits);
      auto const plan   = codec.plan(layout{d}, {.size = 4, .rank = 0});
      auto const chunks = (d + size - 1) / size;
      // 16 bits a norm, 16 bits a chosen coordinate.
      auto const chosen = static_cast<std::size_t>(
        (static_cast<double>(bits) * static_cast<double>(d) - 16.0 * static_cast<double>(chunks)) /
        (16.0 * static_cast<double>(size)));
      CHECK(plan.payload_bytes() == chosen * size * 2);
      CHECK(plan.agreed_bytes() == chunks * 2);
      CHECK(error_of(codec, in) == doctest::Approx(expected[row++]).epsilon(.02).scale(0));
      // With norms in float, whose sums order as those in double do, just as many chunks lose the same: halves add 2^-22.
      exact.chunker.bits = bits + 16.0f / static_cast<float>(size);
      CHECK(exact.plan(layout{d}, {.size = 4, .rank = 0}).payload_bytes() / 2 / size == chosen);
      CHECK(std::abs(error_of(exact, in) - direct_error(in, size, chosen)) <= 1e-6);
    };
    check(
      presets::topkc_b05, codec<top_chunks<128, float>, no_rotation, cast<half>, in_wire>{}, 128);
    check(presets::topkc_b2, codec<top_chunks<64, float>, no_rotation, cast<half>, in_wire>{}, 64);
    check(presets::topkc_b8, codec<top_chunks<64, float>, no_rotation, cast<half>, in_wire>{}, 64);
  }
}

TEST_CASE("[selection_errors] TopK equals a direct computation on the sample gradients")
{
  auto const in    = tests::sample_gradients("step20");
  auto const d     = in[0].size();
  auto const check = [&](auto const& codec, double bits) {
    auto const chosen = codec.plan(layout{d}, {.size = 4, .rank = 0}).chosen();
    CHECK(chosen == static_cast<std::uint64_t>(bits * static_cast<double>(d) / 96) * 2);
    std::vector<double> estimate(d);
    for (auto const& gradient : in) {
      std::vector<std::size_t> order(d);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(gradient[a]) > std::abs(gradient[b]);
      });
      for (std::size_t k = 0; k < chosen; ++k) {
        estimate[order[k]] += static_cast<double>(gradient[order[k]]) / 4;
      }
    }
    double lost = 0, all = 0;
    for (std::size_t i = 0; i < d; ++i) {
      double mean = 0;
      for (auto const& gradient : in) { mean += static_cast<double>(gradient[i]) / 4; }
      lost += (estimate[i] - mean) * (estimate[i] - mean);
      all += mean * mean;
    }
    // Halves add 2^-22 of the energy, and twice the root of its product with what is lost.
    CHECK(std::abs(error_of(codec, in) - lost / all) <= 1e-4 * lost / all + 1e-6);
  };
  check(presets::topk_b05, .5);
  check(presets::topk_b2, 2);
  check(presets::topk_b8, 8);
}

TEST_CASE("[selection_errors] widths by worth beat one width for all on the sample gradients")
{
  auto const late  = tests::sample_gradients("step300");
  auto const early = tests::sample_gradients("step20");
  CHECK(error_of(presets::allocated_sat_4, late) <= .022);
  CHECK(error_of(presets::allocated_sat_2, late) <= .13);
  auto const compare = [](auto fixed, gradients const& in) {
    auto const bits =
      fixed.plan(layout{in[0].size()}, {.size = 4, .rank = 0}).bits_per_coordinate();
    auto same         = presets::allocated_sat_4;
    same.chunker.bits = static_cast<float>(bits);
    CAPTURE(bits);
    CHECK(error_of(same, in) <= error_of(fixed, in));
  };
  for (auto const* const in : {&early, &late}) {
    compare(presets::rotated_sat2, *in);
    compare(presets::rotated_sat4, *in);
    // At the widest width there is nothing to gain but bits. The errors of 391008 coordinates, at most as spread as normal
    // ones, vary by sqrt(2 / 391008) = .23 % from run to run: four deviations of a difference are 1.3 %.
    CHECK(codec<allocated_chunks<1024, 2, 4, 8>,
                partial_hadamard<1024>,
                summed_codes<rms_range<tracked_correlation, bfloat16>,
                             stochastic_quantizer<8>,
                             saturating_sum<8>>,
                in_wire>{.chunker = {.bits = 8}}
            .plan(layout{(*in)[0].size()}, {.size = 4, .rank = 0})
            .wire_bytes() <
          presets::rotated_sat8.plan(layout{(*in)[0].size()}, {.size = 4, .rank = 0}).wire_bytes());
    CHECK(error_of(codec<allocated_chunks<1024, 2, 4, 8>,
                         partial_hadamard<1024>,
                         summed_codes<rms_range<tracked_correlation, bfloat16>,
                                      stochastic_quantizer<8>,
                                      saturating_sum<8>>,
                         in_wire>{.chunker = {.bits = 8}},
                   *in) <= 1.013 * error_of(presets::rotated_sat8, *in));
  }
}

TEST_CASE("[selection_errors] the table of distortions is what normal gradients lose")
{
  // One width for all chunks and independent ranks: the codec's own error in a steady state. The table has three digits of
  // a simulation; what remains is that the head-room of one step follows the error of the step before, some per cent.
  auto const check = []<int Bits>(std::integral_constant<int, Bits>, int world) {
    CAPTURE(Bits);
    CAPTURE(world);
    using fixed = tests::rotated_sums<1024,
                                      rms_range<tracked_correlation>,
                                      stochastic_quantizer<Bits>,
                                      saturating_sum<Bits>>;
    fixed automatic{};
    automatic.coder.range.clip = 0;
    // With two bits the head-room falls by some per cent in a step, for forty steps.
    auto const in = tests::normal_gradients(world, 1 << 16, 11);
    CHECK(
      error_of(automatic, in, Bits == 2 ? 60 : 10) ==
      doctest::Approx(static_cast<double>(saturating_sum<Bits>::distortion(world))).epsilon(.1));
  };
  for (int const world : {1, 2, 4, 8, 16}) {
    check(std::integral_constant<int, 2>{}, world);
    check(std::integral_constant<int, 4>{}, world);
    check(std::integral_constant<int, 8>{}, world);
  }
}

}  // namespace
