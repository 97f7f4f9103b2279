// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Errors of two-shot codecs: EDEN's for one rank, flat in the number of ranks, unbiased, and small on real gradients.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/measure_bias.hpp"
#include "support/normal_gradients.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/presets.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

// One exchange of 2^18 normal coordinates.
template <class Codec>
double error_of(Codec const& codec, int world)
{
  auto const in = tests::normal_gradients<std::mt19937_64>(world, std::size_t{1} << 18, 23);
  tests::loopback_run<Codec> run{codec, layout{in[0].size()}, world, 5};
  return tests::nmse(in, run.exchange(in)[0]);
}

}  // namespace

TEST_CASE("[two_shot] one rank loses what EDEN loses")
{
  // Encoding the estimate of one rank again gives the same codes and scale, so that one encoding is measured. The error of
  // a chunk of C normal coordinates is |v|^2 |l|^2 / <v, l>^2 - 1: it deviates from EDEN's by less than 2 / sqrt(C) of it
  // for any width (1.5 for one bit, by the delta method), and is off by O(1/C). Over 2^18 coordinates five deviations are .02 of it.
  CHECK(error_of(presets::two_shot<1>{}, 1) == doctest::Approx(.5708).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot_2, 1) == doctest::Approx(.13312).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot_3, 1) == doctest::Approx(.035784).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot_4, 1) == doctest::Approx(.0095921).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot<5>{}, 1) == doctest::Approx(.0025110).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot<6>{}, 1) == doctest::Approx(6.4465e-4).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot_8, 1) == doctest::Approx(4.1187e-5).epsilon(.02).scale(0));
  CHECK(error_of(presets::two_shot<12>{}, 1) == doctest::Approx(2.0686e-7).epsilon(.02).scale(0));
}

TEST_CASE("[two_shot] the error is that of two encodings for any number of ranks")
{
  // Independent gradients: the mean of n unbiased estimates with error D has error D over the energy of the mean gradient,
  // and 1 + D of its energy, of which the second encoding loses D.
  for (int const world : {2, 4, 8, 16}) {
    CAPTURE(world);
    double const d3 = .035784, d4 = .0095921;
    CHECK(error_of(presets::two_shot_3, world) ==
          doctest::Approx(d3 * (2 + d3)).epsilon(.03).scale(0));
    CHECK(error_of(presets::two_shot_4, world) ==
          doctest::Approx(d4 * (2 + d4)).epsilon(.03).scale(0));
  }
}

TEST_CASE("[two_shot] 4 bits up and 8 down lose what each encoding loses")
{
  // As above, with the errors of two widths and bounds relative to the error.
  double const d4 = .0095921, d8 = 4.1187e-5;
  CHECK(error_of(presets::two_shot_4_8, 4) ==
        doctest::Approx(d4 + d8 * (1 + d4)).epsilon(.03).scale(0));
}

namespace {

// The same gradient on all ranks, plus noise of its own energy times `noise` on each.
tests::gradients gradients_alike(int world, std::size_t coordinates, double noise)
{
  auto out           = tests::normal_gradients<std::mt19937_64>(world + 1, coordinates, 29);
  auto const common  = out.back();
  float const factor = static_cast<float>(std::sqrt(noise));
  out.pop_back();
  for (auto& gradient : out) {
    for (std::size_t i = 0; i < coordinates; ++i) {
      gradient[i] = common[i] + factor * gradient[i];
    }
  }
  return out;
}

template <class Codec>
double error_on(Codec const& codec, tests::gradients const& in)
{
  int const world = static_cast<int>(in.size());
  tests::loopback_run<Codec> run{codec, layout{in[0].size()}, world, 5};
  return tests::nmse(in, run.exchange(in)[0]);
}

}  // namespace

namespace {

// What n ranks lose with 1 bit up, by integrals. Coordinates are x = sqrt(r) g + sqrt(1 - r) e; all have the normal g.
struct loss_of_signs {
  double up;    // of the mean of what the ranks sent
  double both;  // after the second encoding, in Lloyd-Max codes of 3 bits
};

loss_of_signs integrate_signs(int n, double r)
{
  // A rank sends sqrt(pi / 2) sign(x). With k positive signs the sum is that times 2 k - n. Given g, a sign is positive with
  // the probability Phi(a) of a = g sqrt(r / (1 - r)), and then x has the mean sqrt(r) g + sqrt(1 - r) phi(a) / Phi(a).
  double const pi = std::acos(-1.0), root = std::sqrt(r), noise = std::sqrt(1 - r);
  auto const density = [&](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * pi); };
  std::vector<double> chance(static_cast<std::size_t>(n) + 1), product(chance.size());
  constexpr double step = 1.0 / 64;
  for (int i = -448; i <= 448; ++i) {
    double const g = i * step, a = g * root / noise;
    double const plus = std::erfc(-a / std::sqrt(2.0)) / 2, minus = 1 - plus;
    for (int k = 0; k <= n; ++k) {
      double const log_ways = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
      double const weight =
        step * density(g) * std::exp(log_ways + k * std::log(plus) + (n - k) * std::log(minus));
      double const mean = root * g + noise * density(a) * (k / plus - (n - k) / minus) / n;
      chance[static_cast<std::size_t>(k)] += weight;
      product[static_cast<std::size_t>(k)] += weight * mean;
    }
  }
  using codes    = lloyd_max<3>;
  auto const sum = [&](std::size_t k) {
    return std::sqrt(pi / 2) * (2 * static_cast<double>(k) / n - 1);
  };
  double energy = 0, with_mean = 0, levels = 0, projection = 0, levels_with_mean = 0;
  for (std::size_t k = 0; k < chance.size(); ++k) {
    energy += chance[k] * sum(k) * sum(k);
    with_mean += product[k] * sum(k);
  }
  for (std::size_t k = 0; k < chance.size(); ++k) {
    std::uint32_t const code = codes{}.encode(static_cast<float>(sum(k) / std::sqrt(energy)));
    double const level       = static_cast<double>(codes{}.decode(code));
    levels += chance[k] * level * level;
    projection += chance[k] * level * sum(k);
    levels_with_mean += product[k] * level;
  }
  double const scale = energy / projection, mean_energy = r + (1 - r) / n;
  return {(energy - 2 * with_mean + mean_energy) / mean_energy,
          (scale * scale * levels - 2 * scale * levels_with_mean + mean_energy) / mean_energy};
}

}  // namespace

TEST_CASE("[two_shot] where ranks agree 1 bit up loses little, but for errors in common")
{
  // n ranks whose gradients have the correlation r in pairs: 1 / rho = 1 + (n - 1) r. A rank's error is D of its energy, which
  // is D rho of the mean's. All ranks rotate by the same signs, so that the products of two ranks' errors have the mean c(r):
  // of one bit asin(r) - r, because the product of the signs of two normal values has the mean 2 / pi asin(r), and no error
  // is correlated with any x. So the way up loses rho (D + (n - 1) c(r)).
  double const d1 = std::acos(-1.0) / 2 - 1;
  auto const up   = [&](int n, double r) {
    return (d1 + (n - 1) * (std::asin(r) - r)) / (1 + (n - 1) * r);
  };
  constexpr int world = 64;
  constexpr double r  = 15.0 / 63;  // rho is 1/16
  auto const alike    = integrate_signs(world, r);
  auto const unlike   = integrate_signs(8, 0);
  CHECK(alike.up == doctest::Approx(up(world, r)).epsilon(1e-6).scale(0));
  CHECK(unlike.up == doctest::Approx(d1).epsilon(1e-6).scale(0));
  // Errors of chunks deviate as above: over 2^18 and 2^15 coordinates five deviations are .02 and .055 of the error.
  CHECK(error_of(presets::two_way_shot<1, 3>{}, 8) ==
        doctest::Approx(unlike.both).epsilon(.02).scale(0));
  auto const in          = gradients_alike(world, std::size_t{1} << 15, (1 - r) / r);
  double const one_three = error_on(presets::two_way_shot<1, 3>{}, in);
  CHECK(one_three == doctest::Approx(alike.both).epsilon(.055).scale(0));
  // At the same traffic. The second encoding alone loses some .13 there.
  CHECK(one_three < .6 * error_on(presets::two_shot_2, in));
  // Equal gradients: rho is 1/16 among 16 ranks, but all errors are the same. The mean of equal codes is encoded without
  // error. One bit deviates by 1.5 / sqrt(C), .041 in all.
  auto const equal = gradients_alike(16, std::size_t{1} << 15, 0);
  CHECK(error_on(presets::two_way_shot<1, 3>{}, equal) ==
        doctest::Approx(d1).epsilon(.041).scale(0));
}

namespace {

template <int Bits>
using shot_of_256 = tests::rotated_codes<256, lloyd_max<Bits>, two_shot, no_feedback>;

}  // namespace

TEST_CASE("[two_shot] estimates of one rank are unbiased in every coordinate")
{
  tests::check_unbiased(presets::two_shot<1>{}, 1);
  tests::check_unbiased(presets::two_shot_2, 1);
  tests::check_unbiased(presets::two_shot_4, 1);
  tests::check_unbiased(shot_of_256<3>{}, 1);
  // Two chunks of normal values, each of which gets bits.
  tests::check_unbiased(presets::allocated_4, 1);
}

TEST_CASE("[two_shot] means of three ranks and more are unbiased, with 2 bits along the mean")
{
  // The second encoding sees sums of few levels: of two ranks, or of 2 bits, they lie at the ends of its cells often enough
  // that it weighs the ranks unevenly. A mean of more has neither.
  for (int const world : {3, 8}) {
    CAPTURE(world);
    CHECK(tests::measure_bias(shot_of_256<2>{}, world, 5).projection < 5);
    tests::check_unbiased(shot_of_256<4>{}, world);
  }
  CHECK(tests::measure_bias(presets::two_shot_4, 2, 6, 4000).worst > 5);
}

TEST_CASE("[two_shot] the errors on real gradients are those of the design")
{
  struct wanted {
    std::string set;
    double four, allocated4, allocated2;
  };
  // The mean error of ten exchanges.
  auto const error = [](auto const& codec, std::string const& set, double bits) {
    using codec_type = std::remove_cvref_t<decltype(codec)>;
    auto const in    = tests::sample_gradients(set);
    tests::loopback_run<codec_type> run{codec, layout{in[0].size()}, 4, 42};
    CHECK(run.plan().bits_per_coordinate() <= bits);
    double sum = 0;
    for (int step = 0; step < 10; ++step) {
      auto const& means = run.exchange(in);
      for (auto const& other : means) {
        REQUIRE(std::memcmp(other.data(), means[0].data(), other.size() * sizeof(float)) == 0);
      }
      sum += tests::nmse(in, means[0]);
    }
    return sum / 10;
  };
  for (wanted const& want :
       {wanted{"step20", .0150, .0009, .009}, wanted{"step300", .0180, .0060, .085}}) {
    CAPTURE(want.set);
    CHECK(error(presets::two_shot_4, want.set, 4.07) <= want.four);
    double const with_4 = error(presets::allocated_4, want.set, 4);
    double const with_6 = error(codec<allocated_chunks<512, 2, 4, 6, 7, 8, 10, 14>,
                                      partial_hadamard<512>,
                                      scaled_codes<lloyd_max<8>>,
                                      two_shot>{.chunker = {.bits = 6}},
                                want.set,
                                6);
    double const with_8 = error(codec<allocated_chunks<512, 2, 4, 6, 7, 8, 10, 14>,
                                      partial_hadamard<512>,
                                      scaled_codes<lloyd_max<8>>,
                                      two_shot>{.chunker = {.bits = 8}},
                                want.set,
                                8);
    CHECK(with_4 <= want.allocated4);
    CHECK(error(presets::allocated_2, want.set, 2) <= want.allocated2);
    // With any width for every chunk two bits more make a sixteenth. Widths that are w apart leave chunks 4^-w/2 to 4^w/2 times
    // the error that all would have: where energies are spread evenly over a step, sinh(w ln 2) / (w ln 2) times in the mean, 1.08 for
    // steps of one bit, 1.35 for two. So they make from 16 * 1.08 / 1.35 to 16 * 1.35 / 1.08.
    for (double const ratio : {with_4 / with_6, with_6 / with_8}) {
      CHECK(ratio >= 12.8);
      CHECK(ratio <= 20);
    }
  }
}
