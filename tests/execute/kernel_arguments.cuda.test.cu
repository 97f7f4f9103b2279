// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A kernel finds its arguments where the host has put them: nvcc and the host's compiler lay structures out alike.

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>

using namespace tersum;

constexpr std::size_t arguments = 18;

template <class Args>
__host__ __device__ void find_members(Args const& args, std::uint64_t* bytes)
{
  auto const from = [&](auto const& member) {
    return static_cast<std::uint64_t>(reinterpret_cast<char const*>(&member) -
                                      reinterpret_cast<char const*>(&args));
  };
  std::uint64_t const found[arguments] = {from(args.gradient),
                                          from(args.header),
                                          from(args.records),
                                          from(args.table),
                                          from(args.residual),
                                          from(args.steps),
                                          from(args.rotated),
                                          from(args.payload),
                                          from(args.bypass),
                                          from(args.agreed),
                                          from(args.chunks),
                                          from(args.tensors),
                                          from(args.world),
                                          from(args.dither_mask),
                                          from(args.selection),
                                          from(args.parts),
                                          sizeof(args),
                                          sizeof(args.codec)};
  for (std::size_t i = 0; i < arguments; ++i) { bytes[i] = found[i]; }
}

template <class Args>
__global__ void find_on_device(Args args, std::uint64_t* bytes)
{
  find_members(args, bytes);
}

template <class Codec>
void compare_layouts(Codec const& /*preset*/)
{
  using args_type = detail::exchange_args<Codec, float>;
  args_type const args{};
  std::array<std::uint64_t, arguments> host{}, device{};
  find_members(args, host.data());

  std::uint64_t* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, sizeof(device)) == cudaSuccess);
  find_on_device<<<1, 1>>>(args, memory);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(device.data(), memory, sizeof(device), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  for (std::size_t i = 0; i < arguments; ++i) {
    CAPTURE(i);
    CHECK(device[i] == host[i]);
  }
}

TEST_CASE("[exchange_args] device and host agree where members are")
{
  SUBCASE("nothing but empty policies") { compare_layouts(presets::fp16); }
  SUBCASE("two shots, all empty") { compare_layouts(presets::two_shot_4); }
  SUBCASE("a choice of chunks") { compare_layouts(presets::topkc_b2_ef); }
  SUBCASE("a choice of coordinates") { compare_layouts(presets::topk_b2); }
  SUBCASE("a range with a number") { compare_layouts(presets::rotated_sat4); }
  SUBCASE("a choice and a range") { compare_layouts(presets::allocated_sat_4_ef); }
  SUBCASE("a choice and two shots")
  {
    compare_layouts(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}});
  }
}
