// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! CUB as an oracle of calls on arrays. Its kernels are more than the simulator interprets: these tests need a device.

#include "on_the_device.cuh"

#include <tersum/device/chunk_norms.hpp>
#include <tersum/device/reduce.hpp>
#include <tersum/device/select_chunks.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

namespace {

template <class T>
using device_array = placed_array<device_buffer, T>;

//! The simulator says that it is none.
[[nodiscard]] bool on_a_device()
{
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  bool const real = std::string_view{properties.name}.find("simulator") == std::string_view::npos;
  if (!real) { MESSAGE("skipped: CUB's kernels run on a device only"); }
  return real;
}

//! Calls twice, for the size of the scratch memory and then with it.
template <class Call>
void with_scratch(Call const& call)
{
  std::size_t bytes = 0;
  REQUIRE(call(nullptr, bytes) == cudaSuccess);
  device_array<std::byte> const scratch{bytes + 1};
  REQUIRE(call(scratch.span().data(), bytes) == cudaSuccess);
}

}  // namespace

TEST_CASE("[device] integer payloads add up to what cub::DeviceReduce::Sum says")
{
  if (!on_a_device()) { return; }
  stream const on;
  cuda_executor const exec{on.get()};
  constexpr std::size_t count = 100003;
  constexpr std::size_t ranks = 5;
  std::mt19937 random{3};
  std::vector<std::uint32_t> values(count * ranks);
  for (auto& value : values) { value = static_cast<std::uint32_t>(random()); }
  device_array<std::uint32_t> const gathered{values}, sum{count}, of_all{1}, of_sum{1};
  REQUIRE(
    tersum::reduce(
      exec, native_sum<std::uint32_t>{}, sum.span(), gathered.span(), static_cast<int>(ranks)) ==
    status{});
  auto const add_up = [&](device_array<std::uint32_t> const& from,
                          device_array<std::uint32_t> const& to) {
    with_scratch([&](void* scratch, std::size_t& bytes) {
      return cub::DeviceReduce::Sum(scratch,
                                    bytes,
                                    from.span().data(),
                                    to.span().data(),
                                    static_cast<int>(from.span().size()),
                                    on.get());
    });
  };
  add_up(gathered, of_all);
  add_up(sum, of_sum);
  CHECK(of_sum.read() == of_all.read());
}

TEST_CASE("[device] norms add up to what cub::DeviceReduce::Sum says, within rounding")
{
  if (!on_a_device()) { return; }
  stream const on;
  cuda_executor const exec{on.get()};
  constexpr std::size_t count = 1000003;
  std::mt19937 random{4};
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::vector<double> squares(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i]  = normal(random);
    squares[i] = static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  std::size_t const chunks = chunk_count(fixed_chunks<1024>{}, count);
  device_array<float> const from{values}, norms{chunks};
  device_array<double> const in_double{squares}, total{1};
  REQUIRE(chunk_norms(exec, fixed_chunks<1024>{}, from.span(), norms.span()) == status{});
  with_scratch([&](void* scratch, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(scratch,
                                  bytes,
                                  in_double.span().data(),
                                  total.span().data(),
                                  static_cast<int>(count),
                                  on.get());
  });
  auto const got    = norms.read();
  double const want = total.read()[0];
  double const sum  = std::accumulate(got.begin(), got.end(), 0.0);
  // Each norm is rounded 13 times at most: four chained sums and eight levels, and itself.
  CHECK(std::fabs(sum - want) <= 13 * 0x1p-24 * want);
}

TEST_CASE("[device] select_chunks chooses the first that cub::DeviceRadixSort puts in order")
{
  if (!on_a_device()) { return; }
  stream const on;
  cuda_executor const exec{on.get()};
  for (std::size_t const count : {std::size_t{5000}, std::size_t{1} << 18}) {
    CAPTURE(count);
    std::mt19937 random{7};
    std::normal_distribution<float> octave{0.0f, 4.0f};
    std::vector<bfloat16> sample(count);
    std::vector<std::uint32_t> counted(count);
    for (std::size_t i = 0; i < count; ++i) {
      sample[i]  = to_bfloat16(std::exp2(octave(random)));
      counted[i] = static_cast<std::uint32_t>(i);
    }
    std::size_t const most = count / 8;
    device_array<bfloat16> const norms{sample};
    device_array<std::uint16_t> const sorted{count};
    device_array<std::uint32_t> const numbers{counted}, order{count}, places{count};
    device_array<std::byte> const workspace{select_chunks_workspace_bytes()};
    std::span<bfloat16 const> const from = norms.span();
    REQUIRE(select_chunks(exec,
                          rule_of(top_chunks<64>{}, static_cast<std::uint32_t>(most)),
                          from,
                          workspace.span(),
                          places.span()) == status{});
    with_scratch([&](void* scratch, std::size_t& bytes) {
      // The bits of norms that are not negative ascend with them, and the sort is stable.
      return cub::DeviceRadixSort::SortPairsDescending(
        scratch,
        bytes,
        reinterpret_cast<std::uint16_t const*>(norms.span().data()),
        sorted.span().data(),
        numbers.span().data(),
        order.span().data(),
        static_cast<int>(count),
        0,
        16,
        on.get());
    });
    std::vector<std::uint32_t> want(count);
    auto const in_order = order.read();
    for (std::size_t i = 0; i < most; ++i) { want[in_order[i]] = 1; }
    auto got = places.read();
    for (auto& place : got) { place = chunk_place::of(place).level; }
    CHECK(got == want);
  }
}
