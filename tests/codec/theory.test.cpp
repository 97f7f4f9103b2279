// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Measured errors equal theory: closed forms for normal coordinates, and what rotation and stratification are worth.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/full_hadamard.hpp>

#include <cmath>
#include <numbers>
#include <random>

using namespace tersum;

namespace {

constexpr std::size_t coordinates = std::size_t{1} << 20;

template <class Make>
std::vector<std::vector<float>> draw(int world, unsigned seed, Make make)
{
  std::mt19937_64 random(seed);
  std::vector<std::vector<float>> out(static_cast<std::size_t>(world),
                                      std::vector<float>(coordinates));
  for (auto& gradient : out) {
    for (float& value : gradient) { value = make(random); }
  }
  return out;
}

std::vector<std::vector<float>> draw_normal(int world, unsigned seed)
{
  std::normal_distribution<float> normal;
  return draw(world, seed, [&](auto& random) { return normal(random); });
}

// Amplitudes exp(s N(0, 1)) with random signs.
std::vector<std::vector<float>> draw_lognormal(int world, double s, unsigned seed)
{
  std::normal_distribution<double> normal;
  return draw(world, seed, [&](auto& random) {
    double const amplitude = std::exp(s * normal(random));
    return static_cast<float>(random() % 2 == 0 ? amplitude : -amplitude);
  });
}

template <class Codec>
double error_of(Codec const& codec, std::vector<std::vector<float>> const& in)
{
  tests::loopback_run<Codec> run{codec, layout{coordinates}, static_cast<int>(in.size()), 99};
  return tests::nmse(in, run.exchange(in)[0]);
}

// Variance of stochastic rounding of N(0, 1) to a grid of step d through zero.
double rounding_variance(double d)
{
  double sum = 0;
  for (int k = 1; k < 20; ++k) {
    sum += std::exp(-2 * std::pow(std::numbers::pi * k / d, 2)) / (k * k);
  }
  return d * d / 6 - d * d / std::pow(std::numbers::pi, 2) * sum;
}

// Energy that N(0, 1) loses beyond +-t.
double clipped_energy(double t)
{
  double const tail    = std::erfc(t / std::numbers::sqrt2) / 2;
  double const density = std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi);
  return 2 * ((1 + t * t) * tail - t * density);
}

template <int Size,
          int Bits,
          class Range,
          class Dither  = independent,
          class Rotator = partial_hadamard<Size>>
using exact_codec =
  codec<fixed_chunks<Size>,
        Rotator,
        summed_codes<Range, stochastic_quantizer<Bits, Dither>, widening_sum<Bits, 16>>,
        in_wire>;

// The largest squared magnitude of n groups of C coordinates, per chunk, averaged: E[M^2] measured in double. Normal
// coordinates stay normal under rotation, so the unrotated ones serve.
double mean_square_maximum(std::vector<std::vector<float>> const& in, std::size_t size)
{
  double sum = 0;
  for (std::size_t begin = 0; begin < coordinates; begin += size) {
    double most = 0;
    for (auto const& gradient : in) {
      for (std::size_t i = begin; i < begin + size; ++i) {
        most = std::max(most, std::abs(static_cast<double>(gradient[i])));
      }
    }
    sum += most * most;
  }
  return sum / static_cast<double>(coordinates / size);
}

}  // namespace

// Bands. With N = 2^20 coordinates the squared rounding error, of relative variance at most 2, has a relative standard
// deviation of sqrt(2 / N) = .14 %, the norm of the mean sqrt(2 / N) = .14 %, together .2 %: five of them are 1 %.
TEST_CASE(
  "[codec] the error of a range of root mean squares is rounding variance plus clipped energy")
{
  auto const check = [](auto const& codec, int world, int levels) {
    auto const in = draw_normal(world, 17);
    CAPTURE(world);
    CAPTURE(levels);
    double const spread = codec.coder.range.clip;
    // Clipping is a bias of each rank's own: independent ranks add its energy like that of the signal. Codes beyond the
    // range carry no rounding variance, a share of erfc(T / sqrt 2).
    double const inside = 1 - std::erfc(spread / std::numbers::sqrt2);
    double const theory = rounding_variance(spread / levels) * inside + clipped_energy(spread);
    // N erfc(T / sqrt 2) coordinates clip, 2.7 % at T = 2.2: their energy adds sqrt(5 / (.027 N)) = 1.3 %, five of which
    // on the quarter of the error that it is are 1.7 %; and a chunk of C normal values has its own norm, 2 / C.
    CHECK(error_of(codec, in) == doctest::Approx(theory).epsilon(.03).scale(0));
  };
  check(exact_codec<1024, 4, rms_range<no_headroom>>{.coder = {.range = {.clip = 2.2f}}}, 1, 7);
  check(exact_codec<1024, 4, rms_range<no_headroom>>{.coder = {.range = {.clip = 3.0f}}}, 4, 7);
  check(exact_codec<256, 5, rms_range<no_headroom>>{.coder = {.range = {.clip = 2.7f}}}, 2, 15);
  check(exact_codec<4096, 3, rms_range<no_headroom>>{.coder = {.range = {.clip = 2.2f}}}, 3, 3);
}

TEST_CASE(
  "[codec] the error of the largest magnitude's range is its mean square over six squared levels")
{
  auto const check = [](auto const& codec, int world, std::size_t size, int levels) {
    auto const in = draw_normal(world, 23);
    CAPTURE(world);
    CAPTURE(size);
    CAPTURE(levels);
    double const theory = mean_square_maximum(in, size) / (6.0 * levels * levels);
    // M^2 has a relative standard deviation of about 2 * .35 / 3.4 = 20 % a chunk; the rotated and the unrotated maxima
    // are two samples of N / C chunks of it: 1 % at C = 1024 gives 5 * .2 * sqrt(2 / 1024) = 4.5 %, less below.
    CHECK(error_of(codec, in) == doctest::Approx(theory).epsilon(.045).scale(0));
  };
  check(exact_codec<1024, 4, absmax_range<no_headroom>>{}, 1, 1024, 7);
  check(exact_codec<1024, 4, absmax_range<no_headroom>>{}, 8, 1024, 7);
  check(exact_codec<256, 8, absmax_range<no_headroom>>{}, 4, 256, 127);
}

TEST_CASE("[codec] stratified dither has the error of independent dither times (n + 1) / 2n")
{
  // With independent fractional parts the error of the sum is sum(u) - sum(w), the w uniform and independent: n / 12 from
  // the w, and from the u n / 12 when independent, but 1 / 12 when they are one draw shifted into n = 2^k strata.
  // Eight ranks of rounding error each; the band is five times .2 % twice.
  for (int const world : {2, 8}) {
    auto const in       = draw_normal(world, 31);
    double const spread = 4;
    double const apart  = error_of(
      exact_codec<1024, 4, rms_range<no_headroom>, independent>{.coder = {.range = {.clip = 4.0f}}},
      in);
    double const sharing = error_of(
      exact_codec<1024, 4, rms_range<no_headroom>, stratified>{.coder = {.range = {.clip = 4.0f}}},
      in);
    CAPTURE(world);
    double const clipped = clipped_energy(spread);
    CHECK((sharing - clipped) / (apart - clipped) ==
          doctest::Approx((world + 1) / (2.0 * world)).epsilon(.02).scale(0));
  }
}

TEST_CASE(
  "[codec] rotation is worth several times its error on heavy tails, and nothing on normal input")
{
  using rotated   = exact_codec<1024, 4, absmax_range<no_headroom>>;
  using unrotated = exact_codec<1024, 4, absmax_range<no_headroom>, independent, no_rotation>;
  // Single vectors. For any input the error is at most (M / sigma)^2 / (4 L^2) with M <= sqrt(C) sigma; for s = 1 the
  // peak of 1024 amplitudes, exp(3.4) against a root mean square of e, makes an error of order .3 without rotation and
  // the normal value 11.96 / (6 * 49) = .0407 bounds that with it.
  auto const heavy  = draw_lognormal(1, 1, 37);
  double const with = error_of(rotated{}, heavy);
  CHECK(with < .0407);
  CHECK(error_of(unrotated{}, heavy) > 5 * with);
  auto const heavier = draw_lognormal(1, 2, 41);
  CHECK(error_of(unrotated{}, heavier) > 5 * error_of(rotated{}, heavier));
  // Normal coordinates are normal in every basis.
  auto const normal = draw_normal(1, 43);
  CHECK(error_of(unrotated{}, normal) ==
        doctest::Approx(error_of(rotated{}, normal)).epsilon(.045).scale(0));
}

TEST_CASE(
  "[codec] full rotation equals partial rotation on even input and wastes levels on uneven input")
{
  using partial = exact_codec<1024, 4, absmax_range<no_headroom>>;
  using full    = exact_codec<1024, 4, absmax_range<no_headroom>, independent, full_hadamard>;
  auto even     = draw_normal(1, 47);
  CHECK(error_of(full{}, even) ==
        doctest::Approx(error_of(partial{}, even)).epsilon(.045).scale(0));
  // One chunk of 1024 holds all the energy: partial rotation spends its levels there alone, with the error of a normal
  // chunk, and so does full rotation with one normal vector of all coordinates: the same error relative to the energy.
  auto uneven = even;
  std::fill(uneven[0].begin() + 1024, uneven[0].end(), 0.0f);
  double const theory = 11.96 / (6 * 49);
  CHECK(error_of(partial{}, uneven) <
        2 * theory);  // one chunk: M^2 varies by 20 %, the rounding of 1024 values by 5 %
  CHECK(error_of(full{}, uneven) == doctest::Approx(theory).epsilon(.05).scale(0));
}

TEST_CASE(
  "[codec] a saturating sum with fitting head-room has the published error, whatever the correlation")
{
  // Normal coordinates, n = 4, 4 bits, best head-room: .061 to .063 with independent dither, common signal or not.
  using sat4       = tests::rotated_sums<8192,
                                   rms_range<fixed_headroom>,
                                   stochastic_quantizer<4, independent>,
                                   saturating_sum<4>>;
  auto const apart = draw_normal(4, 53);
  CHECK(error_of(sat4{.coder = {.range = {.clip = 1.85f, .headroom = {2.0f}}}}, apart) ==
        doctest::Approx(.062).epsilon(.05).scale(0));
  std::vector<std::vector<float>> const alike(4, apart[0]);
  CHECK(error_of(sat4{.coder = {.range = {.clip = 1.85f, .headroom = {4.0f}}}}, alike) ==
        doctest::Approx(.062).epsilon(.05).scale(0));
  // And the literal recipe loses most of an identical sum: .163 published for the largest magnitude's range.
  using recipe = tests::rotated_sums<8192,
                                     absmax_range<no_headroom>,
                                     stochastic_quantizer<4, independent>,
                                     saturating_sum<4>>;
  CHECK(error_of(recipe{}, alike) == doctest::Approx(.163).epsilon(.05).scale(0));
}
