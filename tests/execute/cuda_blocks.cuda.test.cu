// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Integers of a block on CUDA are those of CUB, and another tuning of the kernels gives the same bytes.

#include "support/compare_executors.cuh"
#include "support/other_tuning.hpp"

#include <tersum/presets.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cub/block/block_scan.cuh>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

// Short kernels are launched to overlap where the build allows it, long ones never, and none where a tuning says so.
static_assert(detail::overlaps_launch<detail::steps_kernel> == detail::built_to_overlap);
static_assert(!detail::overlaps_launch<detail::norms_kernel<false>>);
static_assert(!detail::overlaps_launch<detail::steps_kernel, other_tuning>);

struct integers_of_thread {
  std::uint32_t below, total;

  bool operator==(integers_of_thread const&) const = default;
};

// Twice with the same room, since what it holds must not matter.
template <unsigned Threads>
__global__ void __launch_bounds__(Threads)
  by_context(std::uint32_t const* values, integers_of_thread* to)
{
  __shared__ std::uint32_t room[32];
  cuda_context const ctx{};
  for (unsigned at = threadIdx.x; at < 2 * Threads; at += Threads) {
    integers_of_thread mine;
    mine.below = block_scan<Threads>::exclusive_sum(ctx, values[at], mine.total, room);
    to[at]     = mine;
  }
}

template <unsigned Threads>
__global__ void __launch_bounds__(Threads)
  by_cub(std::uint32_t const* values, integers_of_thread* to)
{
  using scan = cub::BlockScan<std::uint32_t, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename scan::TempStorage scan_room;
  for (unsigned at = threadIdx.x; at < 2 * Threads; at += Threads) {
    integers_of_thread mine;
    scan{scan_room}.ExclusiveSum(values[at], mine.below, mine.total);
    __syncthreads();
    to[at] = mine;
  }
}

template <unsigned Threads>
[[nodiscard]] std::vector<integers_of_thread> integers_by(void (*kernel)(std::uint32_t const*,
                                                                         integers_of_thread*),
                                                          std::vector<std::uint32_t> const& values)
{
  device_buffer from{values.size() * sizeof(values[0]), 0, std::byte{0}};
  device_buffer const to{values.size() * sizeof(integers_of_thread), 0, std::byte{0xa5}};
  from.write(std::as_bytes(std::span{values}));
  kernel<<<1, Threads>>>(reinterpret_cast<std::uint32_t const*>(from.contents().data()),
                         reinterpret_cast<integers_of_thread*>(to.contents().data()));
  REQUIRE(cudaGetLastError() == cudaSuccess);
  std::vector<integers_of_thread> result(values.size());
  auto const bytes = to.read(0, values.size() * sizeof(result[0]));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

template <unsigned Threads>
void compare_integers()
{
  CAPTURE(Threads);
  std::mt19937 random(Threads);
  std::vector<std::uint32_t> values(2 * Threads);
  for (auto& value : values) { value = static_cast<std::uint32_t>(random()); }  // sums wrap
  std::vector<integers_of_thread> want(values.size());
  for (unsigned begin = 0; begin < values.size(); begin += Threads) {
    auto const first = values.begin() + begin;
    auto const total = std::accumulate(first, first + Threads, 0u);
    for (unsigned t = 0; t < Threads; ++t) {
      want[begin + t] = {std::accumulate(first, first + t, 0u), total};
    }
  }
  CHECK((integers_by<Threads>(&by_context<Threads>, values) == want));
  CHECK((integers_by<Threads>(&by_cub<Threads>, values) == want));
}

TEST_CASE("[cuda_context] scans and sums of a block are those of CUB")
{
  compare_integers<32>();
  compare_integers<128>();
  compare_integers<512>();
  compare_integers<1024>();
}

TEST_CASE("[cuda_executor] another tuning gives the same bytes")
{
  auto const compare = [](auto const& codec) {
    using codec_type = std::remove_cvref_t<decltype(codec)>;
    exchange_case<codec_type, float> const c{
      .codec = codec, .gradient = {.coordinates = prime_from(40000)}, .steps = 2};
    stream const on;
    basic_cuda_executor<other_tuning> const exec{on.get()};
    CHECK(difference(record_exchange<device_buffer>(exec, c, std::byte{0xa5}),
                     record_exchange<host_buffer>(cpu_executor{}, c, std::byte{0x5a})) == "");
  };
  SUBCASE("topkc_b2_ef") { compare(presets::topkc_b2_ef); }
  SUBCASE("two_shot_4") { compare(presets::two_shot_4); }
}
