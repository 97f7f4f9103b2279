// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: values.

#include "support/compare_executors.cuh"
#include "support/values_run.hpp"

#include <tersum/sharded_presets.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

namespace {

template <class ShardElement, class Element, class Codec>
void compare_values(Codec const& codec)
{
  for_each_values_case<ShardElement, Element>(codec, prime_from(9000), [](auto const& c) {
    CAPTURE(c.values.coordinates);
    CAPTURE(c.world);
    stream const on;
    auto const got  = record_values<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
    auto const want = record_values<host_buffer>(cpu_executor{}, c, std::byte{0x5a});
    CHECK(difference(got, want) == "");
  });
}

// What four ranks on two hosts hold after each of two exchanges, and their states.
template <class Buffer, class Executor, class Codec>
exchange_trace record_levels(Executor const& exec, Codec const& codec, std::byte fill)
{
  layout const bucket = odd_bucket().gradient();
  std::deque<Buffer> memory;
  auto const bytes = [&](std::size_t size) -> Buffer& {
    return memory.emplace_back(size, std::size_t{0}, fill);
  };
  std::vector<loopback_rank<Codec, float>> ranks;
  std::vector<Buffer*> gradients, states;
  for (int rank = 0; rank < 4; ++rank) {
    auto const plan = codec.plan(bucket, {.size = 4, .rank = rank}, 2);
    require_ok(plan.check());
    gradients.push_back(&bytes(plan.coordinates() * sizeof(float)));
    states.push_back(&bytes(plan.state_bytes()));
    auto const workspace = bytes(plan.workspace_bytes()).contents();
    auto const values    = gradients.back()->contents();
    ranks.push_back({plan,
                     {reinterpret_cast<float*>(values.data()), plan.coordinates()},
                     states.back()->contents(),
                     workspace});
    require_ok(initialize(exec, plan, states.back()->contents(), 77));
  }
  exchange_trace trace;
  for (int step = 0; step < 2; ++step) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      auto const in = make_gradient<float>(bucket.coordinates, static_cast<int>(rank), step, false);
      gradients[rank]->write(std::as_bytes(std::span{in}));
    }
    std::span<loopback_rank<Codec, float> const> const all{ranks};
    require_ok(loopback_all_reduce_mean(exec, all, reduction_order::direct));
    for (std::size_t rank = 0; rank < 4; ++rank) {
      auto const number = static_cast<int>(rank);
      trace.push_back(
        {"mean", step, number, gradients[rank]->read(0, bucket.coordinates * sizeof(float))});
      trace.push_back(
        {"state", step, number, states[rank]->read(0, states[rank]->contents().size())});
    }
  }
  return trace;
}

}  // namespace

TEST_CASE("[cuda_executor] exchanges on two levels equal the CPU executor")
{
  two_level_codec const codec{presets::two_shot_4};
  stream const on;
  auto const got  = record_levels<device_buffer>(cuda_executor{on.get()}, codec, std::byte{0xa5});
  auto const want = record_levels<host_buffer>(cpu_executor{}, codec, std::byte{0x5a});
  CHECK(difference(got, want) == "");
}

TEST_CASE("[cuda_executor] values equal the CPU executor")
{
  SUBCASE("values_4") { compare_values<float, float>(presets::values_4); }
  SUBCASE("values_half") { compare_values<float, float>(presets::values_half); }
  SUBCASE("values_4_ef of half")
  {
    compare_values<tersum::half, tersum::half>(presets::values_4_ef);
  }
  SUBCASE("differences_4 of float in bfloat16")
  {
    compare_values<float, tersum::bfloat16>(presets::differences_4);
  }
}
