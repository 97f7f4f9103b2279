// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Memory of a device, and exchanges on it over NCCL, each enqueued or replayed from a graph.

#pragma once

#include <tersum/interop/nccl.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <span>
#include <vector>

namespace tersum::tests {

struct device_memory {
  explicit device_memory(std::size_t bytes) : size(bytes)
  {
    if (cudaMalloc(&data, bytes + 1) != cudaSuccess) { data = nullptr; }
  }
  device_memory(device_memory const&) = delete;
  ~device_memory() { cudaFree(data); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data, size}; }
  [[nodiscard]] std::span<float> floats() const
  {
    return {reinterpret_cast<float*>(data), size / sizeof(float)};
  }
  //! Enqueued; the values must live as long.
  void write(std::span<float const> values, nccl_rank const& on) const
  {
    cudaMemcpyAsync(data, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, on.stream);
    cudaStreamSynchronize(on.stream);
  }
  [[nodiscard]] std::vector<float> read() const
  {
    std::vector<float> out(size / sizeof(float));
    cudaMemcpy(out.data(), data, size, cudaMemcpyDeviceToHost);
    return out;
  }

  std::byte* data = nullptr;
  std::size_t size;
};

//! @brief Some steps of an exchange, enqueued each or replayed from a graph.
template <class Expect>
struct exchanges {
  nccl_rank const& on;
  nccl_transport const& nccl;
  Expect const& expect;
  std::size_t steps = 0;
  std::function<status()> begin{};          // initializes the state
  std::function<void(std::size_t)> give{};  // writes what is exchanged in a step
  std::function<void(std::size_t)> check{};

  template <class Once>
  void run(Once const& once, bool from_graph) const
  {
    expect(begin().ok(), "initialize failed");
    cudaGraphExec_t replay = nullptr;
    if (from_graph) {
      cudaGraph_t graph = nullptr;
      expect(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess,
             "no capture begins");
      status const captured = once();
      expect(captured.ok(), captured.message.data());
      expect(cudaStreamEndCapture(on.stream, &graph) == cudaSuccess, "the capture is broken");
      expect(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess, "makes no graph");
      cudaGraphDestroy(graph);
    }
    for (std::size_t step = 0; step < steps; ++step) {
      give(step);
      if (from_graph) {
        expect(cudaGraphLaunch(replay, on.stream) == cudaSuccess, "cannot be replayed");
      } else {
        status const outcome = once();
        expect(outcome.ok(), outcome.message.data());
      }
      status const waited = nccl.wait();
      expect(waited.ok(), waited.message.data());
      check(step);
    }
    if (replay != nullptr) { cudaGraphExecDestroy(replay); }
  }
};
// Clang 14 deduces none for aggregates.
template <class Expect>
exchanges(nccl_rank const&, nccl_transport const&, Expect const&) -> exchanges<Expect>;

}  // namespace tersum::tests
