// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whole exchanges on a device over NCCL: one of TERSUM_GROUPS groups of presets, TERSUM_GROUP.

#include <tersum/interop/nccl.cuh>
#include <tersum/tersum.cuh>

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <interop/presets.hpp>
#include <interop/twin.hpp>
#include <limits>
#include <span>
#include <vector>

namespace tersum::tests {

namespace {

struct device_memory {
  explicit device_memory(std::size_t bytes) : size(bytes)
  {
    if (cudaMalloc(&data, bytes + 1) != cudaSuccess) { data = nullptr; }
  }
  device_memory(device_memory const&) = delete;
  ~device_memory() { cudaFree(data); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data, size}; }

  std::byte* data = nullptr;
  std::size_t size;
};

class codec_suite {
 public:
  explicit codec_suite(nccl_rank const& on)
    : on_(on), nccl_(on.communicator, on.stream, std::chrono::seconds(60))
  {
    expect(nccl_.check().ok(), "", "the communicator", 0, "is not ready");
  }

  template <class Codec>
  void preset(char const* name, Codec const& codec)
  {
    std::vector<layout> taken(shapes.begin(), shapes.end());
    if (on_.brief) { taken.clear(); }
    taken.push_back({.coordinates = on_.longest});
    for (layout const& shape : taken) {
      if (codec.plan(shape, {.size = on_.ranks, .rank = 0}).check().ok()) {
        exchange(name, codec, shape);
      }
    }
    std::uint64_t passing = decoded_.hash();
    bool all              = true;
    for (int hop = 1; hop < on_.ranks; ++hop) {
      std::uint64_t received = 0;
      int const next = (on_.rank + 1) % on_.ranks, last = (on_.rank + on_.ranks - 1) % on_.ranks;
      all     = nccl_.exchange_word(next, passing, last, received).ok() && all;
      all     = all && received == decoded_.hash();
      passing = received;
    }
    expect(all, name, "any way", 0, "the ranks differ");
  }

  [[nodiscard]] int failures() const { return failures_; }

 private:
  void expect(bool ok, char const* name, char const* way, std::size_t size, char const* what)
  {
    if (ok) { return; }
    ++failures_;
    std::printf(
      "rank %d of %d: %s, %s, %zu coordinates: %s\n", on_.rank, on_.ranks, name, way, size, what);
  }

  template <class Codec>
  void exchange(char const* name, Codec const& codec, layout const& shape)
  {
    auto const plan = codec.plan(shape, {.size = on_.ranks, .rank = on_.rank});
    device_memory const state(plan.state_bytes()), workspace(plan.workspace_bytes()),
      scratch(scratch_bytes(plan)), gradient(shape.coordinates * sizeof(float));
    cuda_executor const exec{on_.stream};
    std::span<float> const values{reinterpret_cast<float*>(gradient.data),
                                  static_cast<std::size_t>(shape.coordinates)};
    expectation const& direct = expected(name, shape, on_.ranks, reduction_order::direct);
    expectation const& ring   = expected(name, shape, on_.ranks, reduction_order::ring);
    expect(direct.ok && ring.ok, name, "any way", values.size(), "the loopback failed");

    auto const way = [&](char const* how,
                         auto const& reduce,
                         expectation const& want,
                         bool equal      = true,
                         bool from_graph = false) {
      auto const begin = [&] { return initialize(exec, plan, state.bytes(), 7); };
      auto const once  = [&] {
        return all_reduce_mean(exec, plan, values, state.bytes(), workspace.bytes(), reduce);
      };
      auto const* const header = reinterpret_cast<state_header const*>(state.data);
      run(name, how, begin, once, values, header, want, equal, from_graph);
    };
    bool const bypasses = !shape.tensors.empty();
    bool const any      = (any_order<Codec>() && !bypasses) || on_.ranks <= 2;
    auto const bytes    = scratch.bytes();
    way("two shots", reduce_over<schedule::direct>(nccl_, exec, bytes), direct);
    way("ring", reduce_over<schedule::ring>(nccl_, exec, bytes), ring);
    way("ring, graph", reduce_over<schedule::ring>(nccl_, exec, bytes), ring, true, true);
    way("automatic", reduce_over(nccl_, exec, bytes), direct, any, true);
  }

  // The steps of an exchange, each from `once` or from a graph of it.
  void run(char const* name,
           char const* how,
           std::function<status()> const& begin,
           std::function<status()> const& once,
           std::span<float> values,
           state_header const* header,
           expectation const& want,
           bool equal,
           bool from_graph)
  {
    std::size_t const size = values.size();
    auto const must        = [&](bool ok, char const* what) { expect(ok, name, how, size, what); };
    must(begin().ok(), "initialize failed");
    cudaGraphExec_t replay = nullptr;
    if (from_graph) {
      cudaGraph_t graph = nullptr;
      must(cudaStreamBeginCapture(on_.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess,
           "no capture begins");
      status const captured = once();
      must(captured.ok(), captured.message.data());
      must(cudaStreamEndCapture(on_.stream, &graph) == cudaSuccess, "the capture is broken");
      must(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess, "makes no graph");
      cudaGraphDestroy(graph);
    }
    for (int step = 0; step < steps; ++step) {
      auto const at   = static_cast<std::size_t>(step);
      auto const mine = make_gradient(size, on_.ranks, on_.rank, step);
      cudaMemcpyAsync(
        values.data(), mine.data(), values.size_bytes(), cudaMemcpyHostToDevice, on_.stream);
      if (from_graph) {
        must(cudaGraphLaunch(replay, on_.stream) == cudaSuccess, "cannot be replayed");
      } else {
        status const outcome = once();
        must(outcome.ok(), outcome.message.data());
      }
      status const waited = nccl_.wait();
      must(waited.ok(), waited.message.data());
      std::vector<float> mean(size);
      state_header after;
      cudaMemcpy(mean.data(), values.data(), values.size_bytes(), cudaMemcpyDeviceToHost);
      cudaMemcpy(&after, header, sizeof after, cudaMemcpyDeviceToHost);
      must(!equal || same(mean, want.means[at]), "differs from the loopback");
      must(after.last_was_non_finite() == want.non_finite[at],
           "the flag of the NaN differs from the loopback's");
      for (float const value : mean) {
        decoded_ = {
          "value", decoded_, std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value};
      }
    }
    if (replay != nullptr) { cudaGraphExecDestroy(replay); }
  }

  nccl_rank const& on_;
  nccl_transport nccl_;
  tersum::description decoded_{"decoded"};
  int failures_ = 0;
};

}  // namespace

template <int Group>
int check_nccl_group(nccl_rank const& on)
{
  codec_suite suite(on);
  for_each_preset<TERSUM_GROUPS, Group>(
    [&](char const* name, auto const& codec) { suite.preset(name, codec); });
  return suite.failures();
}

template int check_nccl_group<TERSUM_GROUP>(nccl_rank const& on);

}  // namespace tersum::tests
