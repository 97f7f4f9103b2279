// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte, is captured in graphs, and answers errors with a status.

#include "support/compare_codes.hpp"
#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace cuda_executor_test {

using namespace tersum;
using namespace tersum::tests;

template <class Element, class Codec>
void compare_one(Codec const& codec, std::uint64_t coordinates = 100003)
{
  compare_executors<Codec, Element>(
    {.codec = codec, .gradient = {.coordinates = coordinates}, .world = 2, .steps = 2});
}

template <class Element, class Codec>
void compare_all(Codec const& codec)
{
  constexpr std::uint64_t size = Codec::chunk_size;
  struct shape {
    std::uint64_t coordinates;
    int world;
    bool misaligned;
  };
  for (auto const [coordinates, world, misaligned] : {shape{0, 2, false},
                                                      shape{1, 3, false},
                                                      shape{size - 1, 4, true},
                                                      shape{size, 1, false},
                                                      shape{size + 1, 2, true},
                                                      shape{prime_from(6 * size), 3, false},
                                                      shape{prime_from(1000000), 4, false},
                                                      shape{prime_from(500000), 2, true}}) {
    compare_executors<Codec, Element>({.codec      = codec,
                                       .gradient   = {.coordinates = coordinates},
                                       .world      = world,
                                       .misaligned = misaligned});
  }
  compare_executors<Codec, Element>({.codec           = codec,
                                     .gradient        = {.coordinates = prime_from(9 * size)},
                                     .world           = 2,
                                     .steps           = 4,
                                     .non_finite_step = 1});
  for (bool const misaligned : {false, true}) {
    compare_executors<Codec, Element>({.codec           = codec,
                                       .gradient        = odd_bucket().gradient(),
                                       .world           = 3,
                                       .misaligned      = misaligned,
                                       .non_finite_step = misaligned ? 1 : -1});
  }
}

//! @brief Of codecs that rotate on tensor cores: for 16 bits codes as near to the CPU's as their rounding allows, and the
//! same mean on all ranks; for float the same bytes.
template <class Element, class Codec>
void compare_near(Codec const& codec)
{
  for (bool const misaligned : {false, true}) {
    exchange_case<Codec, Element> const c{.codec      = codec,
                                          .gradient   = {.coordinates = prime_from(300000)},
                                          .world      = 2,
                                          .steps      = 1,
                                          .misaligned = misaligned};
    CAPTURE(c);
    stream const on;
    exchange_trace const got =
      record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
    exchange_trace const want = record_exchange<host_buffer>(cpu_executor{}, c, std::byte{0x5a});
    CHECK(sent(got, "agreed scalars") == sent(want, "agreed scalars"));
    check_codes(codec, sent(got, "payload"), sent(want, "payload"));
    CHECK(sent(got, "gradient")[0] == sent(got, "gradient")[1]);
  }
  compare_all<float>(codec);
}

template <int Size>
using on_tensor_cores = codec<fixed_chunks<Size>,
                              tensor_core_hadamard<Size>,
                              rms_range<tracked_correlation>,
                              stochastic_quantizer<4>,
                              saturating_sum<4>>;

template <int Size>
using tracked = codec<fixed_chunks<Size>,
                      partial_hadamard<Size>,
                      rms_range<tracked_correlation>,
                      stochastic_quantizer<4>,
                      saturating_sum<4>>;

template <int Size>
using fed_back = codec<fixed_chunks<Size>,
                       partial_hadamard<Size>,
                       absmax_range<tracked_correlation, bfloat16>,
                       nearest_quantizer<8>,
                       saturating_sum<8>,
                       error_feedback>;

}  // namespace cuda_executor_test

// Not in the unnamed namespace: doctest opens one of its own in here, which nvcc cannot tell from ours.
using namespace cuda_executor_test;

TEST_CASE("[cuda_executor] presets equal the CPU executor")
{
  SUBCASE("thc_wide4") { compare_all<float>(presets::thc_wide4); }
  SUBCASE("thc_wide4_partial") { compare_all<float>(presets::thc_wide4_partial); }
  SUBCASE("thc_wide4_unrotated") { compare_all<float>(presets::thc_wide4_unrotated); }
  SUBCASE("thc_sat2") { compare_all<float>(presets::thc_sat2); }
  SUBCASE("thc_sat4") { compare_all<float>(presets::thc_sat4); }
  SUBCASE("thc_sat8") { compare_all<float>(presets::thc_sat8); }
  SUBCASE("rotated_sat2") { compare_all<float>(presets::rotated_sat2); }
  SUBCASE("rotated_sat4") { compare_all<float>(presets::rotated_sat4); }
  SUBCASE("rotated_sat8") { compare_all<float>(presets::rotated_sat8); }
  SUBCASE("rotated_sat2_ef") { compare_all<float>(presets::rotated_sat2_ef); }
  SUBCASE("rotated_sat4_ef") { compare_all<float>(presets::rotated_sat4_ef); }
  SUBCASE("rotated_sat8_ef") { compare_all<float>(presets::rotated_sat8_ef); }
}

TEST_CASE("[cuda_executor] two shots and hops equal the CPU executor")
{
  SUBCASE("two_shot_4") { compare_all<float>(presets::two_shot_4); }
  SUBCASE("two_shot_2_ef") { compare_all<tersum::half>(presets::two_shot_2_ef); }
  SUBCASE("per_hop_4_ef") { compare_all<float>(presets::per_hop_4_ef); }
  SUBCASE("dynamiq_hop") { compare_all<float>(presets::dynamiq_hop{.chunker = {.bits = 64}}); }
  SUBCASE("allocated_4") { compare_all<float>(presets::allocated_4); }
  SUBCASE("allocated_2_ef") { compare_all<float>(presets::allocated_2_ef); }
}

TEST_CASE("[cuda_executor] codecs that choose equal the CPU executor")
{
  SUBCASE("topk_b2_ef") { compare_one<float>(presets::topk_b2_ef); }
  SUBCASE("topkc_b2_ef") { compare_all<float>(presets::topkc_b2_ef); }
  SUBCASE("topkc_b0.5 of bfloat16") { compare_all<bfloat16>(presets::topkc_b05); }
  SUBCASE("randomkc_b2") { compare_all<float>(presets::randomkc_b2); }
  SUBCASE("topkc_sat4") { compare_all<float>(presets::topkc_sat4); }
  SUBCASE("allocated_sat_4") { compare_all<float>(presets::allocated_sat_4); }
  SUBCASE("balanced_sat_2_ef") { compare_all<tersum::half>(presets::balanced_sat_2_ef); }
  // More chunks than one block selects.
  SUBCASE("2^18 chunks") { compare_one<float>(presets::topkc_b2, 64 << 18); }
}

TEST_CASE_TEMPLATE(
  "[cuda_executor] casts equal the CPU executor", Element, float, tersum::half, tersum::bfloat16)
{
  SUBCASE("fp32") { compare_all<Element>(presets::fp32); }
  SUBCASE("fp16") { compare_all<Element>(presets::fp16); }
  SUBCASE("bf16") { compare_all<Element>(presets::bf16); }
}

TEST_CASE_TEMPLATE("[cuda_executor] gradients of 16 bits equal the CPU executor",
                   Element,
                   tersum::half,
                   tersum::bfloat16)
{
  SUBCASE("thc_wide4") { compare_all<Element>(presets::thc_wide4); }
  SUBCASE("rotated_sat4") { compare_all<Element>(presets::rotated_sat4); }
  SUBCASE("rotated_sat4_ef") { compare_all<Element>(presets::rotated_sat4_ef); }
}

TEST_CASE_TEMPLATE(
  "[cuda_executor] codes of 16 bits on tensor cores are near those of the CPU executor",
  Element,
  tersum::half,
  tersum::bfloat16)
{
  SUBCASE("rotated_sat2_tc") { compare_near<Element>(presets::rotated_sat2_tc); }
  SUBCASE("rotated_sat4_tc") { compare_near<Element>(presets::rotated_sat4_tc); }
  SUBCASE("rotated_sat8_tc") { compare_near<Element>(presets::rotated_sat8_tc); }
  SUBCASE("256") { compare_near<Element>(on_tensor_cores<256>{.range = {.spread = 1.9f}}); }
  SUBCASE("512") { compare_near<Element>(on_tensor_cores<512>{.range = {.spread = 1.9f}}); }
}

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
  SUBCASE("more than 48 KiB of shared memory") { compare_graph(tracked<32768>{}); }
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
  CHECK(encode(exec, plan, values, state, workspace) == status{});
  CHECK(encode(exec, plan, values.first(4999), state, workspace).code == invalid);
  CHECK(encode(exec, plan, values, state.subspan(8), workspace).code == invalid);
  CHECK(encode(exec, plan, values, state, workspace.first(100)).code == invalid);
  CHECK(initialize(exec, plan, state.first(64), 1).code == invalid);
  CHECK(cudaStreamSynchronize(on.get()) == cudaSuccess);

  float* const nowhere = nullptr;
  status const refused = exec.copy(nowhere, static_cast<float const*>(nowhere), 4);
  CHECK(refused.code == error_code::execution_failed);
  CHECK(refused.native == static_cast<int>(cudaErrorInvalidValue));
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);  // which also clears it for what follows
}
