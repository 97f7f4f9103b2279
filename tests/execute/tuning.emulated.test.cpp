// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Another tuning gives the same bytes, on the CPU and by the kernels.

#include "support/compare_kernels.hpp"
#include "support/odd_matrices.hpp"
#include "support/other_tuning.hpp"

#include <tersum/baseline/catalogue.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/presets.hpp>
#include <tersum/tuning.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Element, class Codec>
void compare(Codec const& codec, layout const& gradient)
{
  exchange_case<Codec, Element> const of{.codec = codec, .gradient = gradient, .steps = 2};
  auto const record = [&](auto const& exec) {
    return record_exchange<host_buffer>(exec, of, std::byte{0xa5});
  };
  exchange_trace const want = record(cpu_executor{});
  CHECK(difference(record(cpu_executor{.threads = 3, .tuning = other_tuning::tuned}), want) == "");
  CHECK(difference(record(basic_emulated_executor<other_tuning>{}), want) == "");
}

TEST_CASE("[tuning] other numbers give the same bytes")
{
  std::uint64_t const several = prime_from(40000);
  SUBCASE("rotated_sat4") { compare<float>(presets::rotated_sat4, odd_bucket().gradient()); }
  SUBCASE("a cast") { compare<half>(presets::fp16, odd_bucket().gradient()); }
  SUBCASE("chosen chunks") { compare<float>(presets::topkc_b2_ef, {.coordinates = several}); }
  SUBCASE("several widths") { compare<half>(presets::allocated_4, {.coordinates = several}); }
  SUBCASE("two shots") { compare<float>(presets::two_shot_4_ef, {.coordinates = several}); }
  SUBCASE("chosen coordinates") { compare<float>(presets::topk_b2, {.coordinates = 5003}); }
  SUBCASE("coordinates by a sample")
  {
    compare<float>(presets::topk_sampled_b2, {.coordinates = 9001});
  }
  SUBCASE("a rotation of all") { compare<float>(presets::thc_wide4, {.coordinates = 5003}); }
}

TEST_CASE("[tuning] other numbers give the same factors")
{
  using codec_type = low_rank_codec<low_rank<3>>;
  compare<float>(codec_type{.low_rank = {.least_saving = 0}}, odd_matrices().gradient());
}

TEST_CASE("[tuning] a stretch of nothing is refused")
{
  CHECK(cpu_executor{.tuning = other_tuning::tuned}.check().ok());
  CHECK(cpu_executor{.tuning = {.cpu = {.step_stretch = 0}}}.check().code ==
        error_code::invalid_argument);
}

}  // namespace
