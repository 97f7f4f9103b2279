// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of the CUDA executor are captured in graphs, errors are a status, and chunks of any size give the CPU executor's bytes.

#include "support/codecs.hpp"
#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cuda/stream_ref>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <type_traits>

using namespace tersum;
using namespace tersum::tests;

template <int Size>
using tracked = tests::
  rotated_sums<Size, rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>;

template <int Size>
using fed_back = tests::rotated_sums<Size,
                                     absmax_range<tracked_correlation, bfloat16>,
                                     nearest_quantizer<8>,
                                     saturating_sum<8>,
                                     error_feedback>;

TEST_CASE_TEMPLATE("[cuda_executor] other sizes of chunks equal the CPU executor",
                   Codec,
                   tracked<128>,
                   tracked<512>,
                   tracked<4096>,
                   tracked<32768>,
                   fed_back<256>,
                   fed_back<2048>,
                   fed_back<16384>)
{
  compare_all<float>(Codec{});
}

TEST_CASE("[cuda_executor] a captured exchange equals direct calls, step after step")
{
  SUBCASE("rotated_sat4") { compare_graph(presets::rotated_sat4); }
  SUBCASE("rotated_sat4_ef") { compare_graph(presets::rotated_sat4_ef); }
  SUBCASE("thc_wide4") { compare_graph(presets::thc_wide4); }
  SUBCASE("two_shot_4") { compare_graph(presets::two_shot_4); }
  SUBCASE("allocated_4") { compare_graph(presets::allocated_4); }
  SUBCASE("topkc_b2") { compare_graph(presets::topkc_b2); }
  SUBCASE("more chunks than one block selects")
  {
    compare_graph(presets::topkc_b2, {.coordinates = 64 * 4100});
  }
  SUBCASE("more than 48 KiB of shared memory") { compare_graph(tracked<32768>{}); }
}

struct own_stream {
  cudaStream_t handle;
  operator cudaStream_t() const { return handle; }
};

static_assert(!std::is_default_constructible_v<cuda_executor>);
static_assert(!std::is_constructible_v<cuda_executor, std::nullptr_t>);
static_assert(!std::is_constructible_v<cuda_executor, int>);
static_assert(!std::is_convertible_v<cudaStream_t, cuda_executor>);
static_assert(!std::is_convertible_v<cuda::stream_ref, cuda_executor>);

TEST_CASE("[cuda_executor] what converts to a stream, or holds one, names it")
{
  stream const on;
  CHECK(cuda_executor{on.get()}.stream == on.get());
  CHECK(cuda_executor{on}.stream == on.get());  // by its member `get`
  CHECK(cuda_executor{own_stream{on.get()}}.stream == on.get());
  CHECK(cuda_executor{cuda::stream_ref{on.get()}}.stream == on.get());
}

TEST_CASE("[cuda_executor] wrong arguments and refused calls come back as a status")
{
  stream const on;
  cuda_executor const exec{on.get()};
  auto const plan = presets::rotated_sat4.plan({.coordinates = 5000}, {.size = 2, .rank = 0});
  device_buffer const gradient{plan.coordinates() * sizeof(float), 0, std::byte{0}};
  device_buffer const memory{plan.state_bytes() + 16, 0, std::byte{0}};
  device_buffer const scratch{plan.workspace_bytes(), 0, std::byte{0}};
  std::span<float> const values{reinterpret_cast<float*>(gradient.contents().data()),
                                plan.coordinates()};
  std::span<std::byte> const state     = memory.contents();
  std::span<std::byte> const workspace = scratch.contents();
  constexpr error_code invalid         = error_code::invalid_argument;

  CHECK(initialize(exec, plan, state, 1) == status{});
  CHECK(measure(exec, plan, values, state, workspace) == status{});
  CHECK(measure(exec, plan, values.first(4999), state, workspace).code == invalid);
  CHECK(measure(exec, plan, values, state.subspan(8), workspace).code == invalid);
  CHECK(measure(exec, plan, values, state, workspace.first(100)).code == invalid);
  CHECK(initialize(exec, plan, state.first(64), 1).code == invalid);
  CHECK(cudaStreamSynchronize(on.get()) == cudaSuccess);

  float* const nowhere = nullptr;
  status const refused = exec.copy(nowhere, static_cast<float const*>(nowhere), 4);
  CHECK(refused.code == error_code::execution_failed);
  CHECK(refused.native == static_cast<int>(cudaErrorInvalidValue));
  // What a call left behind is not the error of the next exchange, and is there for the caller.
  CHECK(measure(exec, plan, values, state, workspace) == status{});
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);  // which also clears it
}
