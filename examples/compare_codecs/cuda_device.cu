// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codecs on the current CUDA device.

#include "cuda_device.hpp"
#include "named_codecs.hpp"

#include <tersum/tersum.cuh>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

namespace compare_codecs {

namespace {

//! @brief Device memory, events for a clock, and the executor on a stream of its own. Errors are kept, the first of them.
struct cuda_device {
  class buffer {
   public:
    explicit buffer(std::size_t bytes)
    {
      void* memory = nullptr;
      if (cudaMalloc(&memory, bytes + 16) == cudaSuccess) {
        memory_.reset(static_cast<std::byte*>(memory));
      }
    }
    [[nodiscard]] std::byte* data() const { return memory_.get(); }

   private:
    struct release {
      void operator()(std::byte* memory) const { cudaFree(memory); }
    };
    std::unique_ptr<std::byte, release> memory_;
  };

  tersum::cuda_executor executor;
  cudaError_t* error;

  void keep(cudaError_t result) const
  {
    if (*error == cudaSuccess) { *error = result; }
  }

  [[nodiscard]] buffer allocate(std::size_t bytes) const { return buffer{bytes}; }

  void upload(void* to, void const* from, std::size_t bytes) const
  {
    keep(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, executor.stream));
    keep(cudaStreamSynchronize(executor.stream));
  }

  void download(void* to, void const* from, std::size_t bytes) const
  {
    keep(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, executor.stream));
    keep(cudaStreamSynchronize(executor.stream));
  }

  void copy(std::byte* to, float const* from, std::size_t bytes) const
  {
    keep(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, executor.stream));
  }

  template <class Prepare, class Work>
  [[nodiscard]] double best_ns(int repeat, Prepare const& prepare, Work const& work) const
  {
    cudaEvent_t begin = nullptr, end = nullptr;
    keep(cudaEventCreate(&begin));
    keep(cudaEventCreate(&end));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeat; ++i) {
      prepare();
      keep(cudaEventRecord(begin, executor.stream));
      work();
      keep(cudaEventRecord(end, executor.stream));
      keep(cudaEventSynchronize(end));
      float milliseconds = 0;
      keep(cudaEventElapsedTime(&milliseconds, begin, end));
      best = std::min(best, milliseconds * 1e6);
    }
    keep(cudaEventDestroy(begin));
    keep(cudaEventDestroy(end));
    return best;
  }
};

}  // namespace

std::string cuda_problem()
{
  int devices             = 0;
  cudaError_t const error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) {
    return std::string("there is no CUDA device: ") + cudaGetErrorString(error);
  }
  return devices == 0 ? "there is no CUDA device" : "";
}

run_outcome run_on_cuda(std::string_view name,
                        std::vector<std::vector<float>> const& gradients,
                        std::vector<layer> const& layers,
                        run_settings const& settings)
{
  cudaStream_t stream = nullptr;
  if (cudaError_t const error = cudaStreamCreate(&stream); error != cudaSuccess) {
    return {{}, std::string("no CUDA stream: ") + cudaGetErrorString(error)};
  }
  cudaError_t error = cudaSuccess;
  cuda_device const device{.executor = tersum::cuda_executor{stream}, .error = &error};
  run_outcome outcome = run_named(
    device, [](auto const& visit) { for_each_codec(visit); }, name, gradients, layers, settings);
  device.keep(cudaStreamSynchronize(stream));
  device.keep(cudaStreamDestroy(stream));
  if (outcome.error.empty() && error != cudaSuccess) { outcome.error = cudaGetErrorString(error); }
  return outcome;
}

}  // namespace compare_codecs
