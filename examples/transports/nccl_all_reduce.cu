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
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

void require(bool ok, char const* what)
{
  if (ok) { return; }
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}
void require(tersum::status const& s) { require(s.ok(), s.message.data()); }
void require(cudaError_t error) { require(error == cudaSuccess, cudaGetErrorString(error)); }
void require(ncclResult_t result) { require(result == ncclSuccess, ncclGetErrorString(result)); }

ncclUniqueId meet(int rank, std::string const& file)
{
  ncclUniqueId id{};
  if (rank == 0) {
    require(ncclGetUniqueId(&id));
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
  require(cudaMalloc(&memory, size + 1));
  return {memory, size};
}

int main(int argc, char** argv)
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) { return std::puts("skipped: no device"), 77; }
  require(argc == 4, "usage: RANK RANKS FILE");
  int const rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]);
  require(cudaSetDevice(rank % devices));
  cudaStream_t stream      = nullptr;
  ncclComm_t communicator  = nullptr;
  cudaGraph_t graph        = nullptr;
  cudaGraphExec_t exchange = nullptr;
  constexpr auto seed      = std::uint64_t{42};
  constexpr auto size      = std::size_t{1} << 24;
  require(cudaStreamCreate(&stream));
  require(ncclCommInitRank(&communicator, ranks, meet(rank, argv[3]), rank));

  // [transport]
  tersum::nccl_transport const nccl{communicator, stream};
  tersum::cuda_executor const exec{stream};
  auto const plan =
    tersum::presets::rotated_sat4.plan({.coordinates = size}, {.size = ranks, .rank = rank});
  require(agree_on(nccl, plan, seed));
  // [transport]
  auto const state     = device_bytes(plan.state_bytes());
  auto const workspace = device_bytes(plan.workspace_bytes());
  auto const scratch   = device_bytes(scratch_bytes(plan));
  auto const memory    = device_bytes(size * sizeof(float));
  std::span const gradient{reinterpret_cast<float*>(memory.data()), size};
  require(initialize(exec, plan, state, seed));

  // The whole exchange is captured once: the sum of the codes, which NCCL lacks, is made in two shots.
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  require(
    all_reduce_mean(exec, plan, gradient, state, workspace, reduce_over(nccl, exec, scratch)));
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&exchange, graph, 0));
  std::vector<float> const values(size, 1.0f + static_cast<float>(rank));
  for (int step = 0; step < 3; ++step) {
    require(
      cudaMemcpyAsync(memory.data(), values.data(), memory.size(), cudaMemcpyDefault, stream));
    require(cudaGraphLaunch(exchange, stream));
    require(nccl.wait());
    float mean = 0;
    require(cudaMemcpy(&mean, memory.data(), sizeof mean, cudaMemcpyDefault));
    if (rank == 0) { std::printf("step %d: mean %f\n", step, mean); }
  }
}
