// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Errors of two-shot codecs: EDEN's for one rank, flat in the number of ranks, unbiased, and small on real gradients.

#include "support/loopback_run.hpp"
#include "support/measure_bias.hpp"
#include "support/normal_gradients.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/presets.hpp>

#include <cmath>
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
  // for any width (1.5 for one bit, by the delta method), and is off by O(1/C) in the mean. Over 2^18 coordinates five
  // deviations are .02 of it.
  CHECK(error_of(presets::two_shot_1, 1) == doctest::Approx(.5708).epsilon(.02));
  CHECK(error_of(presets::two_shot_2, 1) == doctest::Approx(.13312).epsilon(.02));
  CHECK(error_of(presets::two_shot_3, 1) == doctest::Approx(.035784).epsilon(.02));
  CHECK(error_of(presets::two_shot_4, 1) == doctest::Approx(.0095921).epsilon(.02));
  CHECK(error_of(presets::two_shot<5>{}, 1) == doctest::Approx(.0025110).epsilon(.02));
  CHECK(error_of(presets::two_shot<6>{}, 1) == doctest::Approx(6.4465e-4).epsilon(.02));
  CHECK(error_of(presets::two_shot_8, 1) == doctest::Approx(4.1187e-5).epsilon(.02));
}

TEST_CASE("[two_shot] the error is that of two encodings for any number of ranks")
{
  // Independent gradients: the mean of n unbiased estimates with error D has error D over the energy of the mean gradient,
  // and 1 + D of its energy, of which the second encoding loses D.
  for (int const world : {2, 4, 8, 16}) {
    CAPTURE(world);
    double const d3 = .035784, d4 = .0095921;
    CHECK(error_of(presets::two_shot_3, world) == doctest::Approx(d3 * (2 + d3)).epsilon(.03));
    CHECK(error_of(presets::two_shot_4, world) == doctest::Approx(d4 * (2 + d4)).epsilon(.03));
  }
}

TEST_CASE("[two_shot] ways that differ lose what each of their encodings loses")
{
  // As above, with the errors of two widths. The second of them is that of a mean with 1 + D(up) of the energy.
  double const d1 = .5708, d3 = .035784, d4 = .0095921, d8 = 4.1187e-5;
  CHECK(error_of(presets::two_shot_1_3, 8) == doctest::Approx(d1 + d3 * (1 + d1)).epsilon(.03));
  CHECK(error_of(presets::two_shot_4_8, 4) == doctest::Approx(d4 + d8 * (1 + d4)).epsilon(.03));
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

TEST_CASE(
  "[two_shot] where ranks agree the way up loses little, but for what its errors have in common")
{
  // n ranks whose gradients have the correlation r in pairs: the mean has 1 / (n rho) of a rank's energy with 1 / rho =
  // 1 + (n - 1) r. A rank's error is D of its energy, which is D rho of the mean's. Two ranks rotate by the same signs, so
  // that the products of their errors have the mean c(r): of one bit, sqrt(pi / 2) sign(x), it is asin(r) - r, because the
  // product of the signs of two normal values has the mean 2 / pi asin(r), and no error is correlated with any x. So the way
  // up loses rho (D + (n - 1) c(r)), here with r = 15/63 and rho = 1/16 for 64 ranks: .0357 + .0090.
  constexpr int world = 64;
  constexpr double r  = 15.0 / 63;
  auto const in       = gradients_alike(world, std::size_t{1} << 15, (1 - r) / r);
  double const d1 = .5708, d2 = .13312, d3 = .035784, rho = 1.0 / 16;
  double const up        = rho * (d1 + (world - 1) * (std::asin(r) - r));
  double const one_three = error_on(presets::two_shot_1_3, in);
  double const two_two   = error_on(presets::two_shot_2, in);
  // Over 2^15 coordinates five deviations of either error are 5 * 2 / sqrt(2^15) = .055 of it. The sums of signs, whose
  // steps are 2 / sqrt(64 + 63 * 64 * .153) = .077 of their deviation, have at most that squared / 12 = .0005 more or less
  // error than normal values, .006 of all.
  CHECK(one_three == doctest::Approx(up + d3 * (1 + up)).epsilon(.061));
  // The errors of 2 bits have less in common than those of one: between none and D r^3, since they are odd functions without a
  // linear term.
  CHECK(two_two >= (rho * d2 + d2 * (1 + rho * d2)) * (1 - .061));
  CHECK(two_two <= (rho * (d2 + world * d2 * r * r * r) + d2 * (1 + 2 * rho * d2)) * (1 + .061));
  CHECK(one_three < two_two * .65);
  // Equal gradients: rho is 1/16 among 16 ranks, but all errors are the same. The mean of equal codes is encoded without error.
  auto const equal = gradients_alike(16, std::size_t{1} << 15, 0);
  CHECK(error_on(presets::two_shot_1_3, equal) == doctest::Approx(d1).epsilon(.055));
}

namespace {

template <int Bits>
using shot_of_256 =
  two_shot_codec<fixed_chunks<256>, partial_hadamard<256>, lloyd_max<Bits>, no_feedback>;

}  // namespace

TEST_CASE("[two_shot] estimates of one rank are unbiased in every coordinate")
{
  tests::check_unbiased(presets::two_shot_1, 1);
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
    tests::check_unbiased(presets::two_shot_4, world);
  }
  CHECK(tests::measure_bias(presets::two_shot_4, 2, 5, 1000).worst > 5);
}

namespace {

// Feedback without an end: what was decoded in all steps against what was given.
template <class Codec>
void check_what_feedback_keeps()
{
  // Sum of the estimates over T steps = T mean + what the residuals began with - what they hold: of the ranks their mean, of
  // an owner, which keeps a sum, over the ranks.
  constexpr std::size_t d = 1000;
  constexpr int world = 3, steps = 64;
  auto const in = tests::normal_gradients<std::mt19937_64>(world, d, 23);
  tests::loopback_run<Codec> run{Codec{}, layout{d}, world, 5};
  std::vector<double> sum(d), mean(d);
  for (auto const& gradient : in) {
    for (std::size_t i = 0; i < d; ++i) { mean[i] += static_cast<double>(gradient[i]) / world; }
  }
  double first = 0, last = 0;
  for (int t = 1; t <= steps; ++t) {
    auto const& out = run.exchange(in)[0];
    last            = 0;
    for (std::size_t i = 0; i < d; ++i) {
      sum[i] += static_cast<double>(out[i]);
      double kept = 0;
      for (int k = 0; k < world; ++k) { kept += static_cast<double>(run.residual(k)[i]) / world; }
      std::size_t const chunk = i / 256;
      auto const* const owned = reinterpret_cast<float const*>(
        run.state(static_cast<int>(chunk % world)).data() + run.plan().owner_residual_offset());
      kept += static_cast<double>(owned[chunk / world * 256 + i % 256]) / world;
      // Every step rounds some ten times values below 64.
      REQUIRE(std::abs(sum[i] - t * mean[i] + kept) <= t * 10 * 64 * 0x1p-24);
      last += std::pow(sum[i] / t - mean[i], 2);
    }
    if (t == 1) { first = last; }
  }
  // Residuals stay bounded: the error of the average falls like 1 / T^2, not like the 1 / T of independent errors. A
  // residual's energy exceeds the first step's by less than (1 + 1 / (1 - D))^2 with D <= .133 for two encodings: 4.7 + 4.7.
  CHECK(last < 9.4 * first / (steps * steps));
}

template <class Quantizer>
using fed_back =
  two_shot_codec<fixed_chunks<256>, partial_hadamard<256>, Quantizer, error_feedback>;

}  // namespace

TEST_CASE("[two_shot] feedback keeps what both encodings lost")
{
  check_what_feedback_keeps<fed_back<lloyd_max<2>>>();
  check_what_feedback_keeps<fed_back<ways<lloyd_max<2>, lloyd_max<3>>>>();
}

TEST_CASE("[two_shot] the errors on real gradients are those of the design")
{
  struct wanted {
    std::string set;
    double four, allocated4, allocated2, allocated6, allocated8;
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
  for (wanted const& want : {wanted{"step20", .0150, .0009, .009, 3e-5, 5e-6},
                             wanted{"step300", .0180, .0060, .085, 4.5e-4, 4.5e-5}}) {
    CAPTURE(want.set);
    CHECK(error(presets::two_shot_4, want.set, 4.07) <= want.four);
    CHECK(error(presets::allocated_4, want.set, 4) <= want.allocated4);
    CHECK(error(presets::allocated_2, want.set, 2) <= want.allocated2);
    CHECK(error(presets::allocated_6, want.set, 6) <= want.allocated6);
    CHECK(error(presets::allocated_8, want.set, 8) <= want.allocated8);
  }
}
