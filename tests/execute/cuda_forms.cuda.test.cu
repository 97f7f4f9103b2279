// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: shards, values, gathered codes, and residuals in bfloat16.

#include "support/codecs.hpp"
#include "support/compare_executors.cuh"

#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/tersum.cuh>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

namespace {

template <class Element, class ShardElement, class Codec>
void compare_shards(Codec const& codec)
{
  stream const on;
  exchange_case<Codec, Element, ShardElement> const one{
    .codec = codec, .gradient = {.coordinates = profiled_coordinates}, .steps = 1};
  if (is_profiled([&] {
        return record_exchange<device_buffer>(cuda_executor{on.get()}, one, std::byte{0xa5});
      })) {
    return;
  }
  for_each_shard_case<Element, ShardElement>(codec, prime_from(9000), [&](auto const& c) {
    CAPTURE(c.gradient.coordinates);
    CAPTURE(c.world);
    auto const got  = record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
    auto const want = record_exchange<host_buffer>(cpu_executor{}, c, std::byte{0x5a});
    CHECK(difference(got, want) == "");
  });
}

}  // namespace

TEST_CASE("[cuda_executor] shards equal the CPU executor")
{
  SUBCASE("sharded_4") { compare_shards<float, float>(presets::sharded_4); }
  SUBCASE("summed_shards_sat4") { compare_shards<float, float>(presets::summed_shards_sat4); }
  SUBCASE("shards in halves, of bfloat16 in float")
  {
    compare_shards<tersum::bfloat16, float>(
      codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, shard>{});
  }
  SUBCASE("shards with feedback, of bfloat16 in float")
  {
    compare_shards<tersum::bfloat16, float>(presets::sharded<2, error_feedback>{});
  }
  SUBCASE("2 bits of float in bfloat16, with feedback, in a metric")
  {
    using in_metric =
      tests::rotated_codes<256, lloyd_max<2>, shard, error_feedback, given_diagonal>;
    compare_shards<float, tersum::bfloat16>(in_metric{});
  }
}

TEST_CASE("[cuda_executor] values equal the CPU executor")
{
  SUBCASE("values_4") { compare_shards<float, float>(presets::values_4); }
  SUBCASE("values with feedback, of half")
  {
    compare_shards<tersum::half, tersum::half>(presets::values<4, error_feedback>{});
  }
  SUBCASE("differences of float in bfloat16")
  {
    compare_shards<float, tersum::bfloat16>(presets::values<4, difference_feedback>{});
  }
  SUBCASE("with feedback in a metric")
  {
    using codec = tests::rotated_codes<512, lloyd_max<3>, publish, error_feedback, kept_diagonal>;
    compare_shards<float, float>(codec{});
  }
}

TEST_CASE("[cuda_executor] shards whose codes are summed, captured once and replayed")
{
  // Shards that cut chunks, of which one is empty.
  compare_graph(presets::summed_shards_sat4, {9001}, 4, {0, 1500, 1500, 5003, 9001});
}

TEST_CASE("[cuda_executor] gathered codes equal the CPU executor")
{
  SUBCASE("gathered_4") { compare_all<float>(presets::gathered_4); }
  SUBCASE("gathered_2") { compare_one<float>(presets::gathered_2); }
  SUBCASE("gathered codes with feedback, of half")
  {
    compare_one<tersum::half>(presets::gathered<2, error_feedback>{});
  }
}

TEST_CASE("[cuda_executor] residuals in bfloat16 equal the CPU executor's")
{
  using kept = kept_in<tersum::bfloat16>;
  SUBCASE("of sums")
  {
    compare_one<float>(presets::tracked_saturating<nearest_quantizer<4>, kept>{});
  }
  SUBCASE("of two shots, by ranks and owners")
  {
    compare_one<tersum::bfloat16>(presets::two_shot<2, kept>{});
  }
}
