// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Benchmarks of a CUDA device: events, memory larger than the L2 cache, a device copy before every run, checked outputs.

#pragma once

#include "support/exchange_bench.hpp"
#include "support/names.hpp"
#include "support/sample_gradient.hpp"
#include "support/traffic.hpp"

#include <tersum/tersum.cuh>

#include <benchmark/benchmark.h>

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tersum_bench {

inline void require(cudaError_t error)
{
  if (error != cudaSuccess) { throw std::runtime_error{cudaGetErrorString(error)}; }
}

//! @brief Device memory of one benchmark, taken piece by piece and freed together.
class device_memory {
 public:
  device_memory()                                = default;
  device_memory(device_memory const&)            = delete;
  device_memory& operator=(device_memory const&) = delete;
  ~device_memory()
  {
    for (void* const block : blocks_) { cudaFree(block); }
  }

  template <class T>
  [[nodiscard]] std::span<T> take(std::size_t count)
  {
    if (count == 0) { return {}; }
    void* block = nullptr;
    require(cudaMalloc(&block, count * sizeof(T)));
    blocks_.push_back(block);
    return {static_cast<T*>(block), count};
  }

 private:
  std::vector<void*> blocks_;
};

//! @brief A stream, and the events that time what is enqueued on it.
class timed_stream {
 public:
  timed_stream()
  {
    require(cudaStreamCreate(&stream_));
    for (cudaEvent_t& event : events_) { require(cudaEventCreate(&event)); }
  }
  timed_stream(timed_stream const&)            = delete;
  timed_stream& operator=(timed_stream const&) = delete;
  ~timed_stream()
  {
    for (cudaEvent_t const event : events_) { cudaEventDestroy(event); }
    cudaStreamDestroy(stream_);
  }

  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait() const { require(cudaStreamSynchronize(stream_)); }

  //! Times, in ns, of two pieces of work enqueued one behind the other.
  template <class First, class Second>
  [[nodiscard]] std::array<double, 2> time(First const& first, Second const& second)
  {
    require(cudaEventRecord(events_[0], stream_));
    first();
    require(cudaEventRecord(events_[1], stream_));
    second();
    require(cudaEventRecord(events_[2], stream_));
    require(cudaEventSynchronize(events_[2]));
    std::array<double, 2> taken{};
    for (std::size_t i = 0; i < 2; ++i) {
      float milliseconds = 0;
      require(cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]));
      taken[i] = 1e6 * static_cast<double>(milliseconds);
    }
    return taken;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, 3> events_{};
};

//! @brief What was enqueued on a stream, to be launched there again.
class captured_graph {
 public:
  template <class Work>
  captured_graph(cudaStream_t stream, Work const& work) : stream_(stream)
  {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      throw;
    }
    require(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t whole  = nullptr;
    cudaError_t const made = cudaGraphInstantiate(&whole, graph, 0);
    cudaGraphDestroy(graph);
    require(made);
    graph_ = {whole, cudaGraphExecDestroy};
  }

  void launch() const { require(cudaGraphLaunch(graph_.get(), stream_)); }

 private:
  cudaStream_t stream_;
  std::shared_ptr<CUgraphExec_st> graph_{};
};

[[nodiscard]] inline int device_attribute(cudaDeviceAttr which)
{
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

//! How many inputs of so many bytes take turns, so that none is found in the L2 cache.
[[nodiscard]] inline std::size_t turns_for(std::size_t input_bytes)
{
  auto const cache = static_cast<std::size_t>(device_attribute(cudaDevAttrL2CacheSize));
  return std::max<std::size_t>(2, (4 * cache + input_bytes - 1) / input_bytes);
}

[[nodiscard]] inline std::vector<std::byte> to_host(bytes from)
{
  std::vector<std::byte> host(from.size());
  require(cudaMemcpy(host.data(), from.data(), from.size(), cudaMemcpyDeviceToHost));
  return host;
}

//! @brief The sample gradient in device memory: its period, then copies of what is there.
template <class Element>
void fill_gradient(timed_stream const& stream, std::span<Element> to)
{
  auto const& period = gradient_period<Element>();
  std::size_t filled = std::min(period.size(), to.size());
  require(cudaMemcpy(to.data(), period.data(), filled * sizeof(Element), cudaMemcpyHostToDevice));
  while (filled < to.size()) {
    std::size_t const more = std::min(filled, to.size() - filled);
    require(cudaMemcpyAsync(to.data() + filled,
                            to.data(),
                            more * sizeof(Element),
                            cudaMemcpyDeviceToDevice,
                            stream.get()));
    filled += more;
  }
}

//! @brief The bytes; of more than 64 MiB the first and the last half of that, since all of them would take longer to fetch than
//! the rest of a benchmark.
[[nodiscard]] inline std::array<bytes, 2> both_ends(bytes of)
{
  constexpr std::size_t most = std::size_t{64} << 20;
  std::size_t const first    = std::min(of.size(), most / 2);
  return {of.first(first), of.last(std::min(of.size() - first, most / 2))};
}

[[nodiscard]] inline std::array<std::vector<std::byte>, 2> fetch_ends(bytes of)
{
  auto const ends = both_ends(of);
  return {to_host(ends[0]), to_host(ends[1])};
}

//! @brief Whether `work` writes `both_ends` of `out`, the same bytes twice. `state` is as before afterwards.
template <class Work>
[[nodiscard]] bool writes_all(timed_stream const& stream, bytes out, bytes state, Work const& work)
{
  auto const ends = both_ends(out);
  device_memory room;
  bytes const before = room.take<std::byte>(state.size());
  auto const copy    = [&](bytes to, bytes from) {
    if (from.empty()) { return; }
    require(
      cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream.get()));
  };
  copy(before, state);
  auto const run = [&](int poison) {
    for (bytes const end : ends) {
      if (!end.empty()) { require(cudaMemsetAsync(end.data(), poison, end.size(), stream.get())); }
    }
    work();
    stream.wait();
    auto const written = fetch_ends(out);
    copy(state, before);
    stream.wait();
    return written;
  };
  return run(0x5a) == run(0xa5);
}

//! @brief Runs `work(turn)` for the benchmark and `copy(turn)` before each, half of the turns away.
template <class Work, class Copy>
[[nodiscard]] run_times alternate(benchmark::State& state,
                                  timed_stream& stream,
                                  std::size_t turns,
                                  Work const& work,
                                  Copy const& copy)
{
  run_times times;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    copy(turn);
    work(turn);
  }
  std::size_t turn = 0;
  for ([[maybe_unused]] auto _ : state) {
    auto const [copy_ns, work_ns] =
      stream.time([&] { copy((turn + turns / 2) % turns); }, [&] { work(turn); });
    state.SetIterationTime(1e-9 * work_ns);
    times.add(work_ns, copy_ns);
    turn = (turn + 1) % turns;
  }
  return times;
}

//! @brief A device as `exchange_bench.hpp` wants a back end.
class cuda_backend {
 public:
  //! Whatever stream a benchmark makes for itself.
  struct executor {};

  cuda_backend(executor const&, std::size_t) : exec_{stream_.get()} {}

  [[nodiscard]] static std::size_t turns_for(std::size_t input_bytes)
  {
    return tersum_bench::turns_for(input_bytes);
  }
  [[nodiscard]] tersum::cuda_executor const& exec() const { return exec_; }
  [[nodiscard]] timed_stream& stream() { return stream_; }

  template <class T>
  [[nodiscard]] std::span<T> take(std::size_t count)
  {
    return room_.take<T>(count);
  }

  template <class T>
  void fill(std::span<T> gradient) const
  {
    fill_gradient(stream_, gradient);
  }

  template <class T, class From>
  void copy(std::span<T> to, std::span<From> from) const
  {
    require(exec_.copy(to.data(), from.data(), from.size()));
  }

  //! Of the first and the last bytes, as `writes_all`.
  [[nodiscard]] bool same(bytes a, bytes b) const
  {
    stream_.wait();
    return fetch_ends(a) == fetch_ends(b);
  }

  //! What `work` enqueues.
  template <class Work>
  [[nodiscard]] captured_graph capture(Work const& work) const
  {
    return {stream_.get(), work};
  }

  //! @brief Does `work` once more for a profiler, if TERSUM_PROFILE says that there is one.
  template <class Work>
  void profile(Work const& work) const
  {
    if (std::getenv("TERSUM_PROFILE") == nullptr) { return; }
    stream_.wait();
    require(cudaProfilerStart());
    work();
    stream_.wait();
    require(cudaProfilerStop());
  }

  template <class Work>
  [[nodiscard]] bool writes_all(bytes out, bytes state, Work const& work) const
  {
    return tersum_bench::writes_all(stream_, out, state, work);
  }

  template <class Work, class Copy>
  [[nodiscard]] run_times alternate(benchmark::State& state,
                                    std::size_t turns,
                                    Work const& work,
                                    Copy const& copy)
  {
    return tersum_bench::alternate(state, stream_, turns, work, copy);
  }

 private:
  timed_stream stream_{};
  device_memory room_{};
  tersum::cuda_executor exec_;
};

//! @brief Registers a benchmark of a device; `run(state)` may throw.
template <class Run>
void add(std::string_view operation,
         std::string_view preset,
         std::string_view element,
         std::uint64_t n,
         Run const& run)
{
  std::string const name = result_name(operation, preset, element, "cuda", n, 1);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 guarded(state, [&] { run(state); });
                                 if (state.error_occurred()) {
                                   static_cast<void>(cudaGetLastError());
                                 }
                               })
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime();
}

//! @brief Whether there is a device; if so, it goes into the context of the results.
[[nodiscard]] inline bool find_device()
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fputs("no CUDA device: no benchmark to run\n", stderr);
    return false;
  }
  cudaDeviceProp device{};
  require(cudaGetDeviceProperties(&device, 0));
  int driver = 0;
  require(cudaDriverGetVersion(&driver));
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("driver_cuda", std::to_string(driver));
  benchmark::AddCustomContext("compiler",
                              "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                                std::to_string(__CUDACC_VER_MINOR__));
  return true;
}

}  // namespace tersum_bench
