// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the tests over NCCL, RANK RANKS FILE: every schedule against a loopback on the CPU, from a CUDA graph too,
//! ranks with unlike plans, and a rank that stays away.

#include <tersum/interop/nccl.cuh>
#include <tersum/interop/nccl_pieces.cuh>
#include <tersum/interop/nccl_symmetric.cuh>
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
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tersum;

int failures = 0;
int me       = 0;
int ranks    = 1;
cudaStream_t stream;

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

struct device_memory {
  explicit device_memory(std::size_t bytes) : size(bytes)
  {
    expect(cudaMalloc(&data, bytes + 16) == cudaSuccess, "memory", "there is none");
  }
  device_memory(device_memory const&) = delete;
  ~device_memory() { cudaFree(data); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data, size}; }

  std::byte* data = nullptr;
  std::size_t size;
};

std::vector<float> make_gradient(std::size_t size, int rank, int step)
{
  std::vector<float> out(size);
  for (std::size_t i = 0; i < size; ++i) {
    auto const mixed = static_cast<std::uint32_t>(i * 2654435761u) ^
                       static_cast<std::uint32_t>(rank * 40503 + step * 977);
    out[i] = static_cast<float>((mixed * 2246822519u >> 8) % 20001) / 1e4f - 1.0f;
  }
  return out;
}

// Two steps over a collective that make(exec, plan, workspace) makes, against the same ranks on the CPU.
template <class Codec, class Make>
void check(nccl_transport const& nccl,
           char const* name,
           Codec const& codec,
           reduction_order order,
           bool equals_loopback,
           bool from_graph,
           std::span<std::byte> workspace,
           Make make)
{
  constexpr std::size_t size = 300007;
  layout const shape{.coordinates = size};
  auto const plan = codec.plan(shape, {.size = ranks, .rank = me});
  device_memory const state(plan.state_bytes()), scratch(scratch_bytes(plan, 4)),
    gradient(size * sizeof(float));
  cuda_executor const exec{stream};
  std::span<float> const values{reinterpret_cast<float*>(gradient.data), size};
  expect(initialize(exec, plan, state.bytes(), 7).ok(), name, "initialize");

  // The same ranks on the CPU.
  std::vector<std::vector<word4>> states, workspaces;
  std::vector<std::vector<float>> gradients(static_cast<std::size_t>(ranks));
  std::vector<loopback_rank<Codec, float>> all;
  for (int k = 0; k < ranks; ++k) {
    auto const its = codec.plan(shape, {.size = ranks, .rank = k});
    states.emplace_back(its.state_bytes() / 16 + 1);
    workspaces.emplace_back(its.workspace_bytes() / 16 + 1);
    all.push_back({its,
                   {},
                   std::as_writable_bytes(std::span{states.back()}),
                   std::as_writable_bytes(std::span{workspaces.back()})});
    expect(initialize(cpu_executor{}, its, all.back().state, 7).ok(), name, "initialize");
  }

  auto const& reduce  = make(exec, scratch.bytes());
  auto const exchange = [&] {
    return all_reduce_mean(exec, plan, values, state.bytes(), workspace, reduce);
  };
  cudaGraphExec_t replay = nullptr;
  if (from_graph) {
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    expect(exchange().ok(), name, "cannot be captured");
    expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess, name, "cannot be captured");
    expect(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess, name, "makes no graph");
    cudaGraphDestroy(graph);
  }
  for (int step = 0; step < 2; ++step) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      gradients[k]    = make_gradient(size, static_cast<int>(k), step);
      all[k].gradient = gradients[k];
    }
    auto const& mine = gradients[static_cast<std::size_t>(me)];
    cudaMemcpyAsync(gradient.data, mine.data(), gradient.size, cudaMemcpyDefault, stream);
    if (from_graph) {
      expect(cudaGraphLaunch(replay, stream) == cudaSuccess, name, "cannot be replayed");
    } else {
      expect(exchange().ok(), name, "the exchange failed");
    }
    expect(nccl.wait(stream).ok(), name, "the stream failed");
    std::vector<float> mean(size);
    cudaMemcpy(mean.data(), gradient.data, gradient.size, cudaMemcpyDefault);
    expect(loopback_all_reduce_mean(
             cpu_executor{}, std::span<loopback_rank<Codec, float> const>{all}, order)
             .ok(),
           name,
           "the loopback failed");
    if (equals_loopback) {
      expect(std::memcmp(mean.data(), gradients[0].data(), gradient.size) == 0,
             name,
             "differs from the loopback");
    }
    tersum::detail::fingerprint_hash hash;
    for (float const value : mean) { hash.add(value); }
    std::uint64_t left = 0;
    expect(
      nccl.exchange_word((me + 1) % ranks, hash.result(), (me + ranks - 1) % ranks, left).ok() &&
        left == hash.result(),
      name,
      "the ranks differ");
  }
  if (replay != nullptr) { cudaGraphExecDestroy(replay); }
}

constexpr std::size_t workspace_room = 8 << 20;  // of all codecs here

template <schedule Schedule>
constexpr auto over(nccl_transport const& nccl)
{
  return [&nccl](cuda_executor const& exec, std::span<std::byte> scratch) {
    return reduce_over<Schedule>(nccl, exec, scratch);
  };
}

void check_schedules(nccl_transport const& nccl)
{
  using enum reduction_order;
  device_memory const memory(workspace_room);
  auto const run = [&](auto... what) { check(nccl, what...); };
  auto const two = over<schedule::direct>(nccl);
  auto const w   = memory.bytes();
  run("rotated_sat4, two shots", presets::rotated_sat4, direct, true, false, w, two);
  run("rotated_sat4, graph", presets::rotated_sat4, direct, true, true, w, two);
  run("allocated_sat_2, two shots", presets::allocated_sat_2, direct, true, false, w, two);
  run("two_shot_4", presets::two_shot_4, direct, true, false, w, two);
  run(
    "rotated_sat4, ring", presets::rotated_sat4, ring, true, false, w, over<schedule::ring>(nccl));
  bool const any = ranks <= 2;  // the order of more is NCCL's
  run("fp16", presets::fp16, direct, any, false, w, over<schedule::automatic>(nccl));
}

void check_pieces(ncclComm_t communicator)
{
  cudaStream_t beside = nullptr;
  expect(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking) == cudaSuccess, "pieces", "");
  nccl_transport const nccl{communicator, beside, std::chrono::seconds(60)};
  device_memory const memory(workspace_room), scratch(workspace_room);
  nccl_pieces const reduce{nccl, cuda_executor{stream}, scratch.bytes(), 4};
  auto const make = [&](auto&&...) { return std::cref(reduce); };
  bool const any  = ranks <= 2;  // the norms are NCCL's sums of float
  using enum reduction_order;
  auto const run = [&](auto... what) { check(nccl, what..., memory.bytes(), make); };
  run("rotated_sat4, pieces", presets::rotated_sat4, direct, any, false);
  run("rotated_sat4, pieces in a graph", presets::rotated_sat4, direct, any, true);
  run("two_shot_4, beside", presets::two_shot_4, direct, true, true);
  cudaStreamDestroy(beside);
}

void check_symmetric(ncclComm_t communicator, nccl_transport const& nccl)
{
  void* data = nullptr;
  if (ncclMemAlloc(&data, workspace_room) != ncclSuccess) {
    std::printf("rank %d: no symmetric memory here\n", me);
    return;
  }
  std::span const memory{static_cast<std::byte*>(data), workspace_room};
  {
    nccl_symmetric const reduce{communicator, cuda_executor{stream}, memory};
    auto const make = [&](auto&&...) { return std::cref(reduce); };
    if (reduce.check().ok()) {
      using enum reduction_order;
      check(
        nccl, "rotated_sat4, symmetric", presets::rotated_sat4, direct, true, false, memory, make);
      check(nccl, "two_shot_4, symmetric", presets::two_shot_4, direct, true, false, memory, make);
      check(nccl, "fp16, symmetric", presets::fp16, direct, true, true, memory, make);
    } else {
      std::printf("rank %d: %s\n", me, reduce.check().message.data());
    }
  }
  ncclMemFree(data);
}

void check_agreement(nccl_transport const& nccl)
{
  auto const plan = [](auto const& codec) {
    return codec.plan({.coordinates = 10000}, {.size = ranks, .rank = me});
  };
  bool const odd     = me == ranks - 1;
  auto const refused = ranks > 1 ? error_code::invalid_argument : error_code::ok;
  expect(agree_on(nccl, plan(presets::rotated_sat4), 7).ok(), "agree_on", "refuses equal plans");
  status const other = odd ? agree_on(nccl, plan(presets::rotated_sat8), 7)
                           : agree_on(nccl, plan(presets::rotated_sat4), 7);
  expect(other.code == refused, "agree_on", "does not see another codec");
}

}  // namespace

int main(int argc, char** argv)
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) { return std::puts("skipped: no device"), 77; }
  if (argc < 4) { return std::fprintf(stderr, "usage: RANK RANKS FILE\n"), 2; }
  me    = std::atoi(argv[1]);
  ranks = std::atoi(argv[2]);
  if (cudaSetDevice(me % devices) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) {
    return 1;
  }
  {
    ncclComm_t const communicator = connect(argv[3], true);
    nccl_transport const nccl{communicator, stream, std::chrono::seconds(60)};
    expect(nccl.check().ok(), "the communicator", nccl.check().message.data());
    check_agreement(nccl);
    check_schedules(nccl);
    check_pieces(communicator);
    check_symmetric(communicator, nccl);
    if (!nccl.aborted()) { ncclCommDestroy(communicator); }
  }
  // The last rank connects, and then does nothing while the others wait for it.
  if (ranks > 1) {
    ncclComm_t const communicator = connect(std::string(argv[3]) + ".alone", false);
    nccl_transport const nccl{communicator, stream, std::chrono::seconds(3)};
    expect(nccl.check().ok(), "the communicator", nccl.check().message.data());
    std::uint64_t received = 0;
    auto const begin       = std::chrono::steady_clock::now();
    if (me == ranks - 1) {
      std::this_thread::sleep_for(std::chrono::seconds(8));
      ncclCommAbort(communicator);
    } else {
      auto const s = nccl.exchange_word((me + 1) % ranks, 1, (me + ranks - 1) % ranks, received);
      // Rank 0 waits for what never comes; of more than two ranks those in the middle are served.
      if (me == 0) { expect(!s.ok(), "a rank stays away", "nobody said so"); }
      expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8),
             "a rank stays away",
             "the timeout passed");
      if (!nccl.aborted()) { ncclCommAbort(communicator); }
    }
  }
  if (failures == 0) { std::printf("rank %d of %d: ok\n", me, ranks); }
  return failures == 0 ? 0 : 1;
}
