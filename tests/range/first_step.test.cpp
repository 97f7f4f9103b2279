// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The first step of tracked head-room is no worse than zeros, for any number of ranks, and the range soon finds the sum.

#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace tersum;

namespace {

using gradients = std::vector<std::vector<float>>;

constexpr std::size_t coordinates = 1 << 13;

gradients identical(int world)
{
  gradients in = tests::normal_gradients(world, coordinates, 3);
  for (auto& gradient : in) { gradient = in[0]; }
  return in;
}

// Zeros have an error of 1. Of 2^13 normal coordinates the rounding of independent ranks is known to some per cent.
template <class Codec>
void check_first_steps(Codec const& codec)
{
  for (int const world : {1, 2, 3, 4, 5, 7, 8, 9, 10, 16, 33, 64}) {
    CAPTURE(world);
    for (gradients const& in : {tests::normal_gradients(world, coordinates, 3), identical(world)}) {
      tests::loopback_run<Codec> run{codec, layout{coordinates}, world, 5};
      CHECK(tests::nmse(in, run.exchange(in)[0]) <= 1);
    }
  }
}

TEST_CASE("[first_step] the first mean is no worse than zeros, for any number of ranks")
{
  SUBCASE("rotated_sat2") { check_first_steps(presets::rotated_sat2); }
  SUBCASE("rotated_sat4") { check_first_steps(presets::rotated_sat4); }
  SUBCASE("allocated_sat_2") { check_first_steps(presets::allocated_sat_2); }
}

// Ranks that cancel each other take the range down to that of one rank.
template <class Codec>
void check_recovery(Codec const& codec, int world)
{
  gradients const same = identical(world);
  gradients opposite   = same;
  for (std::size_t rank = 0; rank < opposite.size(); rank += 2) {
    for (float& value : opposite[rank]) { value = -value; }
  }
  tests::loopback_run<Codec> fresh{codec, layout{coordinates}, world, 5};
  tests::loopback_run<Codec> run{codec, layout{coordinates}, world, 5};
  for (int step = 0; step < 110; ++step) {
    static_cast<void>(fresh.exchange(same));
    static_cast<void>(run.exchange(step < 100 ? opposite : same));
  }
  // Both have the same step of training and the same draws; what is left of the past is less than a tenth of the error.
  double const want = tests::nmse(same, fresh.exchange(same)[0]);
  CHECK(tests::nmse(same, run.exchange(same)[0]) <= 1.1 * want);
}

TEST_CASE("[first_step] ranks that become alike are found within ten steps")
{
  SUBCASE("rotated_sat2") { check_recovery(presets::rotated_sat2, 64); }
  SUBCASE("two widths")
  {
    codec<allocated_chunks<256, 2, 8>,
          partial_hadamard<256>,
          summed_codes<rms_range<tracked_correlation, bfloat16>,
                       stochastic_quantizer<8>,
                       saturating_sum<8>>,
          in_wire>
      widths{.chunker = {.bits = 2.06f}};
    check_recovery(widths, 16);
  }
}

}  // namespace
