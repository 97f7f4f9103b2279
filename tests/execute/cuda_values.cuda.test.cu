// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: values.

#include "support/codecs.hpp"
#include "support/compare_executors.cuh"
#include "support/shard_run.hpp"

#include <tersum/feedback/kept_in.hpp>
#include <tersum/tersum.cuh>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <functional>

using namespace tersum;
using namespace tersum::tests;

namespace {

template <class ShardElement, class Element, class Codec>
void compare_values(Codec const& codec)
{
  stream const on;
  shard_case<Codec, ShardElement, Element> const one{
    .codec = codec, .gradient = {.coordinates = profiled_coordinates}, .steps = 1};
  if (is_profiled([&] {
        return record_shards<device_buffer>(cuda_executor{on.get()}, one, std::byte{0xa5});
      })) {
    return;
  }
  for_each_shard_case<ShardElement, Element>(codec, prime_from(9000), [&](auto const& c) {
    CAPTURE(c.gradient.coordinates);
    CAPTURE(c.world);
    auto const got  = record_shards<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
    auto const want = record_shards<host_buffer>(cpu_executor{}, c, std::byte{0x5a});
    CHECK(difference(got, want) == "");
  });
}

}  // namespace

TEST_CASE("[cuda_executor] values equal the CPU executor")
{
  SUBCASE("values_4") { compare_values<float, float>(presets::values_4); }
  SUBCASE("values with feedback, of half")
  {
    compare_values<tersum::half, tersum::half>(presets::values<4, error_feedback>{});
  }
  SUBCASE("differences of float in bfloat16")
  {
    compare_values<float, tersum::bfloat16>(presets::values<4, difference_feedback>{});
  }
  SUBCASE("with feedback in a metric")
  {
    using codec = tests::rotated_codes<512, lloyd_max<3>, publish, error_feedback, kept_diagonal>;
    compare_values<float, float>(codec{});
  }
}
