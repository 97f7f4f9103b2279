// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the tests over NCCL, a process: RANK RANKS FILE.

#include <tersum/interop/nccl.cuh>
#include <tersum/interop/nccl_symmetric.cuh>
#include <tersum/tersum.cuh>

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <interop/twin.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tersum;

int failures = 0;
int me       = 0;
int ranks    = 1;

void expect(bool ok, char const* name, char const* what)
{
  if (ok) { return; }
  ++failures;
  std::printf("rank %d of %d: %s: %s\n", me, ranks, name, what);
}

ncclUniqueId meet(std::string const& file)
{
  ncclUniqueId id{};
  if (me == 0) {
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

ncclComm_t connect(std::string const& file, bool blocking)
{
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking     = blocking ? 1 : 0;
  ncclComm_t out      = nullptr;
  auto const result   = ncclCommInitRankConfig(&out, ranks, meet(file), me, &config);
  expect(result == ncclSuccess || result == ncclInProgress, "connect", "NCCL does not begin");
  return out;
}

// An exchange whose workspace is symmetric memory, against the loopback.
template <class Codec>
void exchange(nccl_symmetric const& reduce,
              nccl_transport const& nccl,
              char const* name,
              Codec const& codec,
              std::span<std::byte> workspace)
{
  layout const shape{.coordinates = 60001};
  auto const plan = codec.plan(shape, {.size = ranks, .rank = me});
  cuda_executor const exec{nccl.stream()};
  std::byte *state = nullptr, *gradient = nullptr;
  expect(cudaMalloc(&state, plan.state_bytes()) == cudaSuccess &&
           cudaMalloc(&gradient, shape.coordinates * sizeof(float)) == cudaSuccess,
         name,
         "no memory");
  std::span<float> const values{reinterpret_cast<float*>(gradient), shape.coordinates};
  std::span<std::byte> const kept{state, plan.state_bytes()};
  expect(initialize(exec, plan, kept, 7).ok(), name, "initialize failed");
  auto const& reference = tests::expected(name, shape, ranks, reduction_order::direct);
  auto const mine       = tests::make_gradient(values.size(), ranks, me, 0);
  cudaMemcpy(values.data(), mine.data(), values.size_bytes(), cudaMemcpyHostToDevice);
  expect(all_reduce_mean(exec, plan, values, kept, workspace, std::cref(reduce)).ok(),
         name,
         "the exchange failed");
  expect(nccl.wait().ok(), name, "the stream failed");
  std::vector<float> mean(values.size());
  cudaMemcpy(mean.data(), values.data(), values.size_bytes(), cudaMemcpyDeviceToHost);
  expect(reference.ok && tests::same(mean, reference.means[0]), name, "differs from the loopback");
  cudaFree(state);
  cudaFree(gradient);
}

void check_symmetric(tests::nccl_rank const& on)
{
  constexpr std::size_t room = 8 << 20;
  void* data                 = nullptr;
  if (ncclMemAlloc(&data, room) != ncclSuccess) {
    if (me == 0) {
      std::puts("skipped: exchanges over symmetric memory, which is not to be had here");
    }
    return;
  }
  std::span const memory{static_cast<std::byte*>(data), room};
  {
    nccl_transport const nccl{on.communicator, on.stream, std::chrono::seconds(60)};
    nccl_symmetric const reduce{on.communicator, cuda_executor{on.stream}, memory};
    if (reduce.check().ok()) {
      exchange(reduce, nccl, "rotated_sat4", presets::rotated_sat4, memory);
      exchange(reduce, nccl, "two_shot_4", presets::two_shot_4, memory);
      exchange(reduce, nccl, "fp16", presets::fp16, memory);
    } else {
      auto const why = reduce.check().message;
      if (me == 0) { std::printf("skipped: exchanges over symmetric memory: %s\n", why.data()); }
    }
  }
  ncclMemFree(data);
}

}  // namespace

int main(int argc, char** argv)
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) { return std::puts("skipped: no device"), 77; }
  if (argc < 4) { return std::fprintf(stderr, "usage: RANK RANKS FILE\n"), 2; }
  me    = std::atoi(argv[1]);
  ranks = std::atoi(argv[2]);
  tests::nccl_rank on{.rank = me, .ranks = ranks, .brief = ranks > 2};
  if (cudaSetDevice(me % devices) != cudaSuccess || cudaStreamCreate(&on.stream) != cudaSuccess ||
      cudaStreamCreateWithFlags(&on.beside, cudaStreamNonBlocking) != cudaSuccess) {
    return 1;
  }
  on.communicator = connect(argv[3], true);
  failures += tests::check_nccl_transport(on) + tests::check_nccl_codecs(on);
  check_symmetric(on);
  ncclCommDestroy(on.communicator);
  if (ranks > 1) {
    on.communicator = connect(std::string(argv[3]) + ".alone", false);
    failures += tests::check_nccl_absence(on, std::chrono::seconds(3), std::chrono::seconds(8));
  }
  if (failures == 0) { std::printf("rank %d of %d: ok\n", me, ranks); }
  return failures == 0 ? 0 : 1;
}
