// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that claim it are unbiased in every coordinate, and at the first of each chunk, where a bias of the rotated
//! values would collect.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <cmath>

using namespace tersum;

namespace {

constexpr std::size_t coordinates = 1000;  // the last chunk is padded
constexpr std::uint64_t seed      = 77;

struct biases {
  double worst;     // |mean error| of the worst coordinate, in standard deviations
  double at_first;  // of the first coordinates of all chunks together
  double
    in_rotation;  // of the mean rotated value of all chunks, which is that of the first, with its sign
};

// Errors of many steps. A rounding error has a variance of at most step^2 / 4, the mean over ranks, of whatever
// correlation, no more; the inverse rotation averages over the independent errors of a chunk. So an error has a standard
// deviation of at most step / 2 at any coordinate, and the mean of T steps step / 2 / sqrt(T). Rounding to 1/256 of a
// step, odd in the value, adds nothing: fresh signs in each step make its own mean vanish like the rest.
template <class Codec>
biases measure(Codec const& codec, int world, int steps)
{
  auto const in            = tests::normal_gradients(world, coordinates, 3);
  std::size_t const chunks = codec.plan(layout{coordinates}, {}).chunks();
  std::size_t const size   = Codec::chunk_size;
  tests::loopback_run<Codec> run{codec, layout{coordinates}, world, seed};
  std::vector<double> mean(coordinates);
  double with_signs = 0, step_size = 0;
  for (int t = 0; t < steps; ++t) {
    std::uint64_t const key = run.header().sign_key;
    auto const& out         = run.exchange(in)[0];
    for (std::size_t i = 0; i < coordinates; ++i) {
      double truth = 0;
      for (auto const& gradient : in) { truth += static_cast<double>(gradient[i]) / world; }
      double const error = static_cast<double>(out[i]) - truth;
      mean[i] += error / steps;
      if (i % size == 0) {
        bool const negated = (sign_bits(i / 32, key) & 1) != 0;
        with_signs += (negated ? -error : error) / steps / static_cast<double>(chunks);
      }
    }
    auto const* const chunk = reinterpret_cast<chunk_step const*>(run.workspace().data());
    double const root       = Codec::rotates_chunks ? std::sqrt(1.0 * Codec::chunk_size) : 1;
    for (std::size_t c = 0; c < chunks; ++c) {
      step_size = std::max(step_size, static_cast<double>(chunk[c].decode) * root * world);
    }
  }
  if constexpr (saturates<Codec>) { CHECK(run.record(0).saturated == 0); }
  double const sigma = step_size / 2 / std::sqrt(steps);
  double first       = 0;
  biases out{};
  for (std::size_t i = 0; i < coordinates; ++i) {
    out.worst = std::max(out.worst, std::abs(mean[i]) / sigma);
    if (i % size == 0) { first += mean[i] / static_cast<double>(chunks); }
  }
  out.at_first    = std::abs(first) / sigma * std::sqrt(static_cast<double>(chunks));
  out.in_rotation = std::abs(with_signs) / sigma * std::sqrt(static_cast<double>(chunks));
  return out;
}

template <class Codec>
void check_unbiased(Codec const& codec, int world)
{
  static_assert(Codec::quantizer_type::unbiased);
  CAPTURE(world);
  // A thousand coordinates stay within five deviations but for a chance of 6e-4.
  biases const found = measure(codec, world, 2000);
  CHECK(found.worst < 5);
  CHECK(found.at_first < 5);
  CHECK(found.in_rotation < 5);
}

}  // namespace

TEST_CASE("[codec] exact sums of stochastic codes are unbiased in every coordinate")
{
  using apart   = tests::rotated_sums<128,
                                    absmax_range<no_headroom>,
                                    stochastic_quantizer<3, independent>,
                                    widening_sum<3, 8>>;
  using sharing = tests::rotated_sums<256,
                                      absmax_range<no_headroom, bfloat16>,
                                      stochastic_quantizer<4, stratified>,
                                      widening_sum<4, 8>>;
  using coarse  = tests::rotated_sums<128,
                                     absmax_range<no_headroom>,
                                     stochastic_quantizer<2, stratified>,
                                     guard_lanes<8>>;
  for (int const world : {1, 3}) {
    check_unbiased(apart{}, world);
    check_unbiased(sharing{}, world);
    check_unbiased(coarse{}, world);
  }
}

TEST_CASE("[codec] stochastic codes without rotation are unbiased in every coordinate")
{
  using plain = tests::plain_sums<128,
                                  absmax_range<no_headroom>,
                                  stochastic_quantizer<4, independent>,
                                  widening_sum<4, 8>>;
  // Without signs the same value is rounded to 1/256 of a step in each step: an error of up to step / 512, which is .17
  // of the deviation at 2000 steps. It is part of the claim, and within its band.
  check_unbiased(plain{}, 2);
}

TEST_CASE("[codec] saturating sums of stochastic codes are unbiased when nothing saturates")
{
  // Head-room for the whole world and a range of six root mean squares: of 1000 normal coordinates none comes near.
  using roomy = tests::rotated_sums<128,
                                    rms_range<fixed_headroom>,
                                    stochastic_quantizer<8, stratified>,
                                    saturating_sum<8>>;
  check_unbiased(roomy{.coder = {.range = {.clip = 6.0f, .headroom = {3.0f}}}}, 3);
}

TEST_CASE("[codec] rounding to nearest is biased, and the same measurement says so")
{
  using nearest =
    tests::plain_sums<128, absmax_range<no_headroom>, nearest_quantizer<3>, widening_sum<3, 8>>;
  static_assert(!nearest::quantizer_type::unbiased);
  // Without signs the error is the same in every step, up to half a step: sqrt(T) deviations.
  biases const found = measure(nearest{}, 1, 400);
  CHECK(found.worst > .9 * std::sqrt(400.0));
  // Rotation spreads that error but keeps it when values are few steps wide: a coordinate that holds most of its chunk's
  // energy is shrunk in every step, whatever the signs.
  using rotated =
    tests::rotated_sums<128, rms_range<no_headroom>, nearest_quantizer<2>, widening_sum<2, 8>>;
  tests::loopback_run<rotated> run{
    rotated{.coder = {.range = {.clip = 2.5f}}}, layout{128}, 1, seed};
  std::vector<float> spike(128);
  spike[0]    = 1;
  double mean = 0;
  for (int t = 0; t < 100; ++t) { mean += static_cast<double>(run.exchange({spike})[0][0]) / 100; }
  // Every rotated value is one root mean square, .4 of a step: all codes are zero.
  CHECK(mean == 0);
}
