// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Errors of per-hop codecs: how they grow with the ranks, beside those of two shots.

#include "support/loopback_run.hpp"
#include "support/measure_bias.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace tersum;

namespace {

constexpr std::size_t coordinates = std::size_t{1} << 18;

template <class Codec>
double error_of(Codec const& codec, int world)
{
  auto const in = tests::normal_gradients<std::mt19937_64>(world, coordinates, 23);
  tests::loopback_run<Codec> run{codec, layout{coordinates}, world, 5};
  return tests::nmse(in, run.exchange(in)[0]);
}

// The estimate of chunks of 1024 values in double.
template <class Quantizer>
std::vector<double> encoded(std::vector<double> const& v)
{
  std::vector<double> out(v.size());
  for (std::size_t begin = 0; begin < v.size(); begin += 1024) {
    double energy = 0, product = 0;
    for (std::size_t i = begin; i < begin + 1024; ++i) { energy += v[i] * v[i]; }
    double const root = std::sqrt(1024 / energy);
    for (std::size_t i = begin; i < begin + 1024; ++i) {
      Quantizer const codebook{};
      out[i] =
        static_cast<double>(codebook.decode(codebook.encode(static_cast<float>(v[i] * root))));
      product += out[i] * v[i];
    }
    for (std::size_t i = begin; i < begin + 1024; ++i) { out[i] *= energy / product; }
  }
  return out;
}

// A chain of hops without a rotation, which normal values do not need, on draws of its own.
template <class Quantizer>
double reference_error(int world)
{
  auto const in = tests::normal_gradients<std::mt19937_64>(world, coordinates, 1023);
  std::vector<double> truth(coordinates), sum(coordinates);
  for (auto const& gradient : in) {
    std::vector<double> own(gradient.begin(), gradient.end());
    for (std::size_t i = 0; i < coordinates; ++i) { truth[i] += own[i]; }
    own = encoded<Quantizer>(own);
    for (std::size_t i = 0; i < coordinates; ++i) { sum[i] += own[i]; }
    if (&gradient != &in[0]) { sum = encoded<Quantizer>(sum); }
  }
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < coordinates; ++i) {
    lost += (sum[i] - truth[i]) * (sum[i] - truth[i]);
    all += truth[i] * truth[i];
  }
  return lost / all;
}

// An estimate has 1 + D times the energy of what it estimates, E for one rank. With r = 1 + D hop k makes A_k = r (A_(k-1) +
// r E), from A_1 = r E; errors are uncorrelated with what they are errors of, so that of A_n all but n E is error.
double theory(double loss, int world)
{
  double energy = 1 + loss;
  for (int k = 2; k <= world; ++k) { energy = (1 + loss) * (energy + 1 + loss); }
  return energy / world - 1;
}

}  // namespace

TEST_CASE("[per_hop] errors grow with the ranks as those of a chain of hops in double")
{
  // The error of a chunk of C deviates by less than 2 / sqrt(C) of itself (see two_shot_theory), over 256 chunks by .0039,
  // and the energy of 2^18 normal values by .0028: together .0048, .0068 for the ratio of two such, of which .034 is five.
  for (int const world : {2, 4, 8, 16}) {
    CAPTURE(world);
    CHECK(error_of(presets::per_hop_2, world) ==
          doctest::Approx(reference_error<lloyd_max<2>>(world)).epsilon(.034));
    CHECK(error_of(presets::per_hop_4, world) ==
          doctest::Approx(reference_error<lloyd_max<4>>(world)).epsilon(.034));
  }
}

TEST_CASE(
  "[per_hop] each hop of fine codes loses D / (1 - D) of the partial sum's energy, of coarse codes less")
{
  // Five of the deviations above, without those of a reference: .024. Partial sums whose values lie near the levels of
  // before lose less than others when they are rounded to almost the same levels again.
  double before = 0;
  for (int const world : {2, 4, 8, 16}) {
    CAPTURE(world);
    double const d4 = .0095921, d8 = 4.1187e-5;
    CHECK(error_of(presets::per_hop<8>{}, world) ==
          doctest::Approx(theory(d8, world)).epsilon(.024));
    double const four = error_of(presets::per_hop_4, world);
    CHECK(four <= 1.024 * theory(d4, world));
    // Two encodings are what two shots lose for any number of ranks, and hops for two.
    double const flat = error_of(presets::two_shot_4, world);
    CHECK(flat == doctest::Approx(theory(d4, 2)).epsilon(.024));
    CHECK((four > flat * 1.024) == (world > 2));
    CHECK(four > before);
    before = four;
  }
}

namespace {

// How far the ranks' weights in the sum lie apart, when they are added in their order.
template <class Codec>
double spread_of_weights(Codec const& codec, int world)
{
  auto const in = tests::normal_gradients<std::mt19937_64>(world, coordinates, 23);
  tests::loopback_run<Codec> run{codec, layout{coordinates}, world, 5};
  auto const& out = run.exchange(in, reduction_order::direct)[0];
  double least = 2, most = 0;
  for (auto const& gradient : in) {
    double along = 0, energy = 0;
    for (std::size_t i = 0; i < coordinates; ++i) {
      auto const value = static_cast<double>(gradient[i]);
      along += static_cast<double>(out[i]) * value;
      energy += value * value;
    }
    least = std::min(least, world * along / energy);
    most  = std::max(most, world * along / energy);
  }
  return most - least;
}

}  // namespace

TEST_CASE("[per_hop] with 2 bits hops weigh the ranks unevenly, with 4 bits hardly")
{
  // A weight deviates by sqrt(7 / 2^18) = .0052 for what the seven other gradients happen to share with this one, and for
  // errors of up to .7 of the mean's energy by 8 sqrt(.7 / 8 / 2^18) = .0046: together .0069, of which eight normal draws
  // span less than 7.5, or .052.
  CHECK(spread_of_weights(presets::per_hop_2, 8) > .052);
  CHECK(spread_of_weights(presets::per_hop_4, 8) < .052);
}

TEST_CASE("[per_hop] estimates of one rank are unbiased in every coordinate")
{
  tests::check_unbiased(presets::per_hop_2, 1);
  tests::check_unbiased(presets::per_hop_3, 1);
  tests::check_unbiased(presets::per_hop_4, 1);
}
