// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Device vectors and arrays of CUDA's 16-bit elements are gradients without a cast, with the bytes of tersum's own.

#include "support/compare_executors.cuh"

#include <tersum/interop/thrust.cuh>
#include <tersum/presets.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cuda_runtime.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

static_assert(gradient_memory<thrust::device_vector<float>&>);
static_assert(gradient_memory<thrust::device_vector<__half>&>);
static_assert(gradient_memory<std::span<__nv_bfloat16>>);
static_assert(gradient_memory<std::span<float>>);
static_assert(!gradient_memory<thrust::device_vector<float> const&>);
static_assert(!gradient_memory<std::span<__half const>>);
static_assert(!gradient_memory<thrust::device_vector<double>&>);
static_assert(std::same_as<decltype(device_span(std::declval<thrust::device_vector<std::byte>&>())),
                           std::span<std::byte>>);

//! Values of another type with the same bits, on the device.
template <class T, class Element>
[[nodiscard]] thrust::device_vector<T> vector_of(std::vector<Element> const& values)
{
  std::vector<T> same(values.size());
  std::memcpy(static_cast<void*>(same.data()), values.data(), values.size() * sizeof(T));
  return thrust::device_vector<T>(same.begin(), same.end());
}

template <class Element, class T>
[[nodiscard]] std::vector<Element> values_of(thrust::device_vector<T> const& memory)
{
  std::vector<T> same(memory.size());
  thrust::copy(memory.begin(), memory.end(), same.begin());
  std::vector<Element> values(same.size());
  std::memcpy(static_cast<void*>(values.data()), same.data(), same.size() * sizeof(T));
  return values;
}

template <class Cuda, class Element>
void compare_with_own()
{
  constexpr auto codec = presets::rotated_sat4;
  auto const plan      = codec.plan({.coordinates = 5003}, {.size = 1, .rank = 0});
  std::vector<Element> values(plan.coordinates());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = from_float<Element>(static_cast<float>(i * 2654435761u % 2001) / 1000.0f - 1.0f);
  }
  auto gradient  = vector_of<Cuda>(values);
  auto array     = vector_of<Cuda>(values);
  auto own       = vector_of<Element>(values);
  auto state     = vector_of<std::byte>(std::vector<std::byte>(plan.state_bytes()));
  auto workspace = vector_of<std::byte>(std::vector<std::byte>(plan.workspace_bytes()));
  stream const on;
  cuda_executor const exec{on};
  auto const alone    = [](auto) {};
  auto const exchange = [&](auto&& memory) {
    REQUIRE(initialize(exec, plan, device_span(state), 1).ok());
    REQUIRE(
      all_reduce_mean(exec, plan, memory, device_span(state), device_span(workspace), alone).ok());
    REQUIRE(cudaStreamSynchronize(on.get()) == cudaSuccess);
  };
  auto const same = [&](std::vector<Element> const& a, std::vector<Element> const& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(Element)) == 0;
  };
  exchange(gradient);
  exchange(std::span{thrust::raw_pointer_cast(array.data()), array.size()});
  exchange(std::span{thrust::raw_pointer_cast(own.data()), own.size()});
  CHECK(!same(values_of<Element>(own), values));
  CHECK(same(values_of<Element>(gradient), values_of<Element>(own)));
  CHECK(same(values_of<Element>(array), values_of<Element>(own)));
}

TEST_CASE("[thrust] device vectors and CUDA's elements are gradients")
{
  SUBCASE("float") { compare_with_own<float, float>(); }
  SUBCASE("__half") { compare_with_own<__half, tersum::half>(); }
  SUBCASE("__nv_bfloat16") { compare_with_own<__nv_bfloat16, tersum::bfloat16>(); }
}
