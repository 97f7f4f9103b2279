// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that claim it are unbiased in every coordinate, and at the first of each chunk, where a bias would collect.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/measure_bias.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <cmath>

using namespace tersum;

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
    tests::check_unbiased(apart{}, world);
    tests::check_unbiased(sharing{}, world);
    tests::check_unbiased(coarse{}, world);
  }
}

TEST_CASE("[codec] stochastic codes without rotation are unbiased in every coordinate")
{
  using plain = tests::plain_sums<128,
                                  absmax_range<no_headroom>,
                                  stochastic_quantizer<4, independent>,
                                  widening_sum<4, 8>>;
  // Without signs the same value is rounded to 1/256 of a step in each step: an error of up to step / 512, which is .1 of
  // the deviation at 400 steps. It is part of the claim, and within its band.
  tests::check_unbiased(plain{}, 2);
}

TEST_CASE("[codec] saturating sums of stochastic codes are unbiased when nothing saturates")
{
  // Head-room for the whole world and a range of six root mean squares: of 1000 normal coordinates none comes near.
  using roomy = tests::rotated_sums<128,
                                    rms_range<fixed_headroom>,
                                    stochastic_quantizer<8, stratified>,
                                    saturating_sum<8>>;
  tests::check_unbiased(roomy{.coder = {.range = {.clip = 6.0f, .headroom = {3.0f}}}}, 3);
}

TEST_CASE("[codec] rounding to nearest is biased, and the same measurement says so")
{
  using nearest =
    tests::plain_sums<128, absmax_range<no_headroom>, nearest_quantizer<3>, widening_sum<3, 8>>;
  static_assert(!nearest::quantizer_type::unbiased);
  // Without signs the error is the same in every step, up to half a step: sqrt(T) deviations.
  CHECK(tests::measure_bias(nearest{}, 1, 5).worst > .9 * std::sqrt(400.0));
  // Rotation spreads that error but keeps it when values are few steps wide: a coordinate that holds most of its chunk's
  // energy is shrunk in every step, whatever the signs.
  using rotated =
    tests::rotated_sums<128, rms_range<no_headroom>, nearest_quantizer<2>, widening_sum<2, 8>>;
  tests::loopback_run<rotated> run{rotated{.coder = {.range = {.clip = 2.5f}}}, layout{128}, 1, 77};
  std::vector<float> spike(128);
  spike[0]    = 1;
  double mean = 0;
  for (int t = 0; t < 100; ++t) { mean += static_cast<double>(run.exchange({spike})[0][0]) / 100; }
  // Every rotated value is one root mean square, .4 of a step: all codes are zero.
  CHECK(mean == 0);
}
