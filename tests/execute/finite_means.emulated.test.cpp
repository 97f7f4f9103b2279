// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The mean of finite halves is a finite half, whatever a codec estimates, on the CPU executor and in the kernel bodies.

#include "support/emulated_executor.hpp"
#include "support/loopback_run.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

constexpr half largest{65504.0f};

// A matrix of three blocks at the largest half and one of zeros: its best estimate of rank one is 1.17 times as large in
// the first block, and others are off by a part of that everywhere.
constexpr std::uint64_t rows = 64, columns = 96, size = rows * columns;
constexpr tensor matrix[] = {{"matrix", rows, columns, 0}};

std::vector<half> gradient_of_halves()
{
  std::vector<half> out(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    bool const zero = i / columns >= rows / 2 && i % columns >= columns / 2;
    out[i] =
      zero ? half{} : half::from_bits(static_cast<std::uint16_t>(largest.bits | i % 2 << 15));
  }
  return out;
}

template <class Executor, class Codec>
std::vector<half> mean_of(Executor const& exec, Codec const& codec)
{
  loopback_run<Codec, half, Executor> run{
    codec, {.coordinates = size, .tensors = matrix}, 1, 3, exec};
  // A low-rank codec comes nearer with each step.
  for (int step = 0; step < 4; ++step) {
    run.exchange({gradient_of_halves()});
    CHECK_FALSE(run.header().last_was_non_finite());
  }
  return run.values(0);
}

template <class Codec>
void check(Codec const& codec)
{
  auto const mean     = mean_of(cpu_executor{}, codec);
  auto const infinite = [](half v) { return (v.bits & 0x7c00) == 0x7c00; };
  CHECK(std::none_of(mean.begin(), mean.end(), infinite));
  CHECK(std::count_if(mean.begin(), mean.end(), [](half v) {
          return (v.bits & 0x7fff) == largest.bits;
        }) > 100);
  auto const same     = [](half a, half b) { return a.bits == b.bits; };
  auto const baseline = mean_of(cpu_executor{.instructions = instruction_set::baseline}, codec);
  CHECK(std::equal(mean.begin(), mean.end(), baseline.begin(), same));
  if constexpr (!is_low_rank<Codec>) {  // whose products are near, not equal
    auto const kernels = mean_of(emulated_executor{}, codec);
    CHECK(std::equal(mean.begin(), mean.end(), kernels.begin(), same));
  }
}

TEST_CASE("[kernels] a mean of finite halves is finite, and nothing is flagged")
{
  SUBCASE("sums of codes") { check(presets::rotated_sat4); }
  SUBCASE("rotated as a whole") { check(presets::thc_wide4); }
  SUBCASE("two shots") { check(presets::two_shot_4); }
  SUBCASE("low rank") { check(presets::powersgd_r1); }
}

TEST_CASE("[kernels] a mean that is not finite stays so")
{
  CHECK(detail::finite_from_float<half>(-1e30f).bits == (largest.bits | 0x8000));
  CHECK(detail::finite_from_float<half>(65519.0f).bits == largest.bits);
  CHECK((detail::finite_from_float<half>(std::numeric_limits<float>::quiet_NaN()).bits & 0x7fff) >
        0x7c00);
}

}  // namespace
