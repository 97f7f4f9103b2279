// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Memory and streams of a device, and the comparison of its executor with that of the CPU.

#pragma once

#include "exchange_fixture.hpp"

#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace tersum::tests {

//! @brief Device memory with the members of `host_buffer`. Reads and writes wait for all that the device does.
class device_buffer {
 public:
  device_buffer(std::size_t bytes, std::size_t misplaced, std::byte fill)
  {
    REQUIRE(cudaMalloc(&memory_, bytes + misplaced + 1) == cudaSuccess);
    contents_ = {memory_ + misplaced, bytes};
    REQUIRE(cudaMemset(memory_, std::to_integer<int>(fill), bytes + misplaced) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  device_buffer(device_buffer const&)            = delete;
  device_buffer& operator=(device_buffer const&) = delete;
  ~device_buffer() { cudaFree(memory_); }

  [[nodiscard]] std::span<std::byte> contents() const { return contents_; }

  void write(std::span<std::byte const> from, std::size_t offset = 0) const
  {
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(
      cudaMemcpy(contents_.data() + offset, from.data(), from.size(), cudaMemcpyHostToDevice) ==
      cudaSuccess);
  }

  [[nodiscard]] byte_string read(std::size_t offset, std::size_t bytes) const
  {
    byte_string result(bytes);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(result.data(), contents_.data() + offset, bytes, cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return result;
  }

 private:
  std::byte* memory_ = nullptr;
  std::span<std::byte> contents_;
};

class stream {
 public:
  stream() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess); }
  stream(stream const&)            = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { cudaStreamDestroy(stream_); }

  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

//! @brief Calls what it is given first while the stream is captured, and replays that graph then and in every later call.
class captured_once {
 public:
  explicit captured_once(stream const& on) : on_{on.get()} {}
  captured_once(captured_once const&)            = delete;
  captured_once& operator=(captured_once const&) = delete;
  ~captured_once()
  {
    if (replay_ != nullptr) { cudaGraphExecDestroy(replay_); }
  }

  template <class Exchange>
  status operator()(Exchange const& exchange)
  {
    if (replay_ == nullptr) {
      cudaGraph_t graph = nullptr;
      REQUIRE(cudaStreamBeginCapture(on_, cudaStreamCaptureModeGlobal) == cudaSuccess);
      status const captured = exchange();
      REQUIRE(cudaStreamEndCapture(on_, &graph) == cudaSuccess);
      REQUIRE(captured == status{});
      REQUIRE(cudaGraphInstantiate(&replay_, graph, 0) == cudaSuccess);
      REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    }
    REQUIRE(cudaGraphLaunch(replay_, on_) == cudaSuccess);
    return {};
  }

 private:
  cudaStream_t on_;
  cudaGraphExec_t replay_ = nullptr;
};

//! @brief Checks that the device gives the CPU executor's bytes.
template <class Codec, class Element>
void compare_executors(exchange_case<Codec, Element> const& c)
{
  CAPTURE(c);
  stream const on;
  exchange_trace const got =
    record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
  exchange_trace const want = record_exchange<host_buffer>(cpu_executor{}, c, std::byte{0x5a});
  CHECK(difference(got, want) == "");
}

//! @brief Where TERSUM_PROFILE is set, calls body() between a profiler's marks, and says so: a test then does nothing else, and
//! tests/codegen/check_traffic.py counts what the kernels ask of memory.
template <class Body>
[[nodiscard]] bool is_profiled(Body const& body)
{
  if (std::getenv("TERSUM_PROFILE") == nullptr) { return false; }
  REQUIRE(cudaProfilerStart() == cudaSuccess);
  CHECK_FALSE(body().empty());
  REQUIRE(cudaProfilerStop() == cudaSuccess);
  return true;
}

//! How many coordinates a rank has then.
inline constexpr std::uint64_t profiled_coordinates = 32768;

//! @brief Does one exchange of two ranks for a profiler, if there is one.
template <class Element, class Codec>
[[nodiscard]] bool is_exchange_profiled(Codec const& codec,
                                        layout const& gradient = {
                                          .coordinates = profiled_coordinates})
{
  stream const on;
  exchange_case<Codec, Element> const c{
    .codec = codec, .gradient = gradient, .world = 2, .steps = 1};
  return is_profiled(
    [&] { return record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5}); });
}

//! @brief Tools that look at every access take a thousand times as long: with TERSUM_SMALL set large gradients are left out.
[[nodiscard]] inline std::uint64_t most_coordinates()
{
  return std::getenv("TERSUM_SMALL") == nullptr ? ~std::uint64_t{0} : 300000;
}

//! @brief Whatever arrives in any round, kernels read and write the memory of the plan alone: the simulator looks at every
//! access. TopK is left out, because indices that come twice are added by two threads.
template <class Element, class Codec>
void exchange_hostile(Codec const& codec)
{
  if constexpr (!gathering<Codec>) {
    std::uint64_t const size = Codec::chunk_size;
    stream const on;
    exchange_case<Codec, Element> const c{.codec    = codec,
                                          .gradient = {.coordinates = prime_from(3 * size)},
                                          .steps    = 2,
                                          .hostile  = true};
    CHECK_FALSE(
      record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5}).empty());
  }
}

//! @brief A codec on one gradient.
template <class Element, class Codec>
void compare_one(Codec const& codec, std::uint64_t coordinates = 100003)
{
  if (is_exchange_profiled<Element>(codec)) { return; }
  exchange_hostile<Element>(codec);
  if (coordinates > most_coordinates()) { return; }
  compare_executors<Codec, Element>(
    {.codec = codec, .gradient = {.coordinates = coordinates}, .world = 2, .steps = 2});
}

//! @brief Wherever a gradient begins, the device gives it the bytes of an aligned one.
template <class Element, class Codec>
void compare_offsets(Codec const& codec)
{
  if (std::getenv("TERSUM_PROFILE") != nullptr) { return; }
  stream const on;
  exchange_trace aligned;
  for_each_offset<Element>(codec, [&](exchange_case<Codec, Element> c) {
    auto const record = [&] {
      return record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
    };
    exchange_trace const got = record();
    c.misaligned             = 0;
    if (aligned.empty()) { aligned = record(); }
    CHECK(difference(got, aligned) == "");
  });
}

//! @brief A codec on sizes about its chunk's and up to a million, on buckets, aligned and not, with values that are not finite.
template <class Element, class Codec>
void compare_all(Codec const& codec)
{
  if (is_exchange_profiled<Element>(codec)) { return; }
  exchange_hostile<Element>(codec);
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
    if (coordinates > most_coordinates()) { continue; }
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

//! @brief Checks that an exchange captured in a graph and replayed equals direct calls.
template <class Codec>
void compare_graph(Codec const& codec,
                   layout const& gradient = {.coordinates = prime_from(20 * Codec::chunk_size)},
                   int world              = 3,
                   boundaries const& cuts = {})
{
  stream const on;
  cuda_executor const exec{on.get()};
  exchange_case<Codec, float> const c{
    .codec = codec, .gradient = gradient, .world = world, .cuts = cuts};
  exchange_trace direct, replayed;
  exchange_run<device_buffer, Codec, float> called{exec, c, std::byte{0xa5}},
    ranks{exec, c, std::byte{0xa5}};
  captured_once replay{on};
  for (int step = 0; step < 4; ++step) {
    auto const in = given_in_step(c, step);
    called.exchange(exec, in);
    record_results(direct, step, called);
    ranks.write(in);
    REQUIRE(replay([&] { return ranks.perform(exec); }) == status{});
    record_results(replayed, step, ranks);
  }
  CHECK(difference(replayed, direct) == "");
}

}  // namespace tersum::tests
