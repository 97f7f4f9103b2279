// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients over NCCL at 4 bits a coordinate, from a CUDA graph. One process for each rank:
//! tersum.example.nccl_all_reduce RANK RANKS FILE; rank 0 leaves NCCL's identifier in a file that all see.

#include <tersum/interop/nccl.cuh>
#include <tersum/tersum.cuh>

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

ncclUniqueId meet(int rank, std::string const& file)
{
  ncclUniqueId id{};
  if (rank == 0) {
    ncclGetUniqueId(&id);
    std::ofstream(file + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(file + ".new", file);
  }
  while (!std::filesystem::exists(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
  return id;
}

std::span<std::byte> device_bytes(std::size_t size)
{
  std::byte* memory =
    nullptr;  // until the process ends; aligned to more than the 16 that are needed
  if (cudaMalloc(&memory, size + 1) != cudaSuccess) { std::exit(1); }
  return {memory, size};
}

tersum::status train(tersum::nccl_transport const& nccl, cudaStream_t stream)
{
  constexpr std::size_t size   = 1 << 24;
  constexpr std::uint64_t seed = 42;
  auto const plan              = tersum::presets::rotated_sat4.plan({.coordinates = size},
                                                       {.size = nccl.size(), .rank = nccl.rank()});
  if (auto const s = agree_on(nccl, plan, seed); !s.ok()) { return s; }
  auto const state     = device_bytes(plan.state_bytes());
  auto const workspace = device_bytes(plan.workspace_bytes());
  auto const scratch   = device_bytes(scratch_bytes(plan));
  auto const memory    = device_bytes(size * sizeof(float));
  std::span const gradient{reinterpret_cast<float*>(memory.data()), size};
  std::vector<float> const values(size, 1.0f + static_cast<float>(nccl.rank()));
  tersum::cuda_executor const exec{stream};
  if (auto const s = initialize(exec, plan, state, seed); !s.ok()) { return s; }

  // The whole exchange is captured once: the sum of the codes, which NCCL lacks, is made in two shots.
  cudaGraph_t graph        = nullptr;
  cudaGraphExec_t exchange = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  auto const captured =
    all_reduce_mean(exec, plan, gradient, state, workspace, reduce_over(nccl, exec, scratch));
  cudaStreamEndCapture(stream, &graph);
  if (!captured.ok()) { return captured; }
  cudaGraphInstantiate(&exchange, graph, 0);
  for (int step = 0; step < 3; ++step) {
    cudaMemcpyAsync(memory.data(), values.data(), memory.size(), cudaMemcpyDefault, stream);
    if (auto const s = nccl.wait(); !s.ok()) { return s; }
    auto const begin = std::chrono::steady_clock::now();
    cudaGraphLaunch(exchange, stream);
    if (auto const s = nccl.wait(); !s.ok()) { return s; }
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
    float mean                                           = 0;
    cudaMemcpy(&mean, memory.data(), sizeof mean, cudaMemcpyDefault);
    if (nccl.rank() == 0) { std::printf("step %d: mean %f, %.3f ms\n", step, mean, took.count()); }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv)
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) { return std::puts("skipped: no device"), 77; }
  if (argc < 4) { return std::fprintf(stderr, "usage: RANK RANKS FILE\n"), 2; }
  int const rank = std::atoi(argv[1]);
  cudaStream_t stream;
  ncclComm_t communicator;
  if (cudaSetDevice(rank % devices) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess ||
      ncclCommInitRank(&communicator, std::atoi(argv[2]), meet(rank, argv[3]), rank) !=
        ncclSuccess) {
    return std::fprintf(stderr, "rank %d: no stream or communicator\n", rank), 1;
  }
  auto const outcome = train(tersum::nccl_transport{communicator, stream}, stream);
  if (!outcome.ok()) { return std::fprintf(stderr, "%s\n", outcome.message.data()), 1; }
}
