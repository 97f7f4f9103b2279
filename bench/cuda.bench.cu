// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The parts of an exchange on a CUDA device, timed by events, each beside a device-to-device copy of its input.
//! Without a device there is nothing to run.

#include "support/preset_list.hpp"
#include "support/sample_gradient.hpp"
#include "support/traffic.hpp"

#include <tersum/collective/exchange.hpp>
#include <tersum/tersum.cuh>

#include <benchmark/benchmark.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tersum_bench;
using bytes = std::span<std::byte>;

void require(cudaError_t error)
{
  if (error != cudaSuccess) { throw std::runtime_error{cudaGetErrorString(error)}; }
}

void require(tersum::status const& status)
{
  if (!status.ok()) { throw std::runtime_error{std::string{status.message}}; }
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

[[nodiscard]] int device_attribute(cudaDeviceAttr which)
{
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

//! How many inputs of so many bytes take turns, so that none is found in the L2 cache.
[[nodiscard]] std::size_t turns_for(std::size_t input_bytes)
{
  auto const cache = static_cast<std::size_t>(device_attribute(cudaDevAttrL2CacheSize));
  return std::max<std::size_t>(2, (4 * cache + input_bytes - 1) / input_bytes);
}

[[nodiscard]] std::vector<std::byte> to_host(bytes from)
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

//! @brief Whether `work` writes all of `out`, the same bytes twice. `state` is as before afterwards.
template <class Work>
[[nodiscard]] bool writes_all(timed_stream const& stream, bytes out, bytes state, Work const& work)
{
  std::vector<std::byte> const before = to_host(state);
  auto const run                      = [&](int poison) {
    require(cudaMemsetAsync(out.data(), poison, out.size(), stream.get()));
    work();
    stream.wait();
    if (!state.empty()) {
      require(cudaMemcpy(state.data(), before.data(), before.size(), cudaMemcpyHostToDevice));
    }
    return to_host(out);
  };
  return run(0x5a) == run(0xa5);
}

//! @brief Runs `work(turn)` for the benchmark and `copy(turn)` before each, half of the turns away.
//! @return Best times of both, ns.
template <class Work, class Copy>
[[nodiscard]] std::array<double, 2> alternate(benchmark::State& state,
                                              timed_stream& stream,
                                              std::size_t turns,
                                              Work const& work,
                                              Copy const& copy)
{
  constexpr double never     = std::numeric_limits<double>::infinity();
  std::array<double, 2> best = {never, never};
  for (std::size_t turn = 0; turn < turns; ++turn) {
    copy(turn);
    work(turn);
  }
  std::size_t turn = 0;
  for ([[maybe_unused]] auto _ : state) {
    auto const [copy_ns, work_ns] =
      stream.time([&] { copy((turn + turns / 2) % turns); }, [&] { work(turn); });
    state.SetIterationTime(1e-9 * work_ns);
    best = {std::min(best[0], work_ns), std::min(best[1], copy_ns)};
    turn = (turn + 1) % turns;
  }
  return best;
}

//! Runs a benchmark's body; what it throws becomes the benchmark's error.
template <class Body>
void guarded(benchmark::State& state, Body const& body)
{
  try {
    body();
  } catch (std::exception const& problem) {
    state.SkipWithError(problem.what());
    static_cast<void>(cudaGetLastError());
  }
}

struct operation {
  std::string_view name;
  bool agrees;   // local part of the first round
  bool encodes;  // codes
  bool decodes;
};

constexpr operation norms_operation{"norms", true, false, false};
constexpr operation encode_operation{"encode", false, true, false};
constexpr operation local_operation{"local", true, true, false};
constexpr operation decode_operation{"decode", false, false, true};

template <class Element>
struct rank_memory {
  std::span<Element> gradient;
  std::span<Element> copy;
  bytes state;
  bytes workspace;
};

template <class Element, class Codec>
void run_exchange_part(benchmark::State& state,
                       operation const& what,
                       Codec const& codec,
                       std::uint64_t n)
{
  auto const plan = codec.plan(tersum::layout{n}, tersum::world{});
  traffic<Codec, Element> const moved{plan};
  std::size_t const turns = turns_for(n * sizeof(Element));
  timed_stream stream;
  device_memory room;
  tersum::cuda_executor const exec{stream.get()};
  using memory     = rank_memory<Element>;
  auto const agree = [&](memory const& m) {
    require(encode(exec, plan, m.gradient, m.state, m.workspace));
  };
  auto const codes = [&](memory const& m) {
    require(advance(exec, plan, m.gradient, m.state, m.workspace));
  };
  auto const run = [&](memory const& m) {
    // The first call of a cast makes its codes; it has no second one.
    if (what.agrees || (Codec::casts && what.encodes)) { agree(m); }
    if (what.encodes) { codes(m); }
    if (what.decodes) { require(decode(exec, plan, m.gradient, m.state, m.workspace)); }
  };

  std::vector<memory> ranks;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    memory const m{room.take<Element>(n),
                   room.take<Element>(n),
                   room.take<std::byte>(plan.state_bytes()),
                   room.take<std::byte>(plan.workspace_bytes())};
    fill_gradient(stream, m.gradient);
    require(initialize(exec, plan, m.state, 1));
    agree(m);
    codes(m);
    ranks.push_back(m);
  }
  stream.wait();
  memory const& first = ranks[0];
  bytes const out     = what.decodes ? std::as_writable_bytes(first.gradient)
                        : what.encodes
                          ? first.workspace.subspan(plan.payload_offset(), plan.payload_bytes())
                          : first.workspace.subspan(plan.agreed_offset(), plan.agreed_bytes());
  // Larger sizes run the same kernels; their outputs would take longer to fetch than all the rest.
  if (n <= large && !writes_all(stream, out, first.state, [&] { run(first); })) {
    throw std::runtime_error{"some of the output was not written"};
  }

  auto const [work_ns, copy_ns] = alternate(
    state,
    stream,
    turns,
    [&](std::size_t turn) { run(ranks[turn]); },
    [&](std::size_t turn) {
      memory const& m = ranks[turn];
      require(exec.copy(m.copy.data(), m.gradient.data(), n));
    });
  bool const norms = what.agrees && !Codec::casts;
  set_counters(state,
               n,
               plan.bits_per_coordinate(),
               (norms ? moved.norms() : 0) + (what.encodes ? moved.encode() : 0) +
                 (what.decodes ? moved.decode() : 0),
               moved.gradient(),
               work_ns,
               copy_ns);
}

template <class Codec>
void run_reduce(benchmark::State& state, Codec const& codec, std::uint64_t n)
{
  using op                   = typename Codec::payload_op;
  using element              = typename op::element;
  auto const plan            = codec.plan(tersum::layout{n}, tersum::world{});
  std::size_t const size     = plan.payload_bytes();
  std::size_t const elements = size / sizeof(element);
  std::size_t const turns    = turns_for(size);
  timed_stream stream;
  device_memory room;
  tersum::cuda_executor const exec{stream.get()};
  struct memory {
    std::span<element> a, b, to;
  };
  std::vector<memory> pairs;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    memory const m{
      room.take<element>(elements), room.take<element>(elements), room.take<element>(elements)};
    // Ordinary numbers and codes in every format that is summed here.
    require(cudaMemsetAsync(m.a.data(), 0x11, size, stream.get()));
    require(cudaMemsetAsync(m.b.data(), 0x31, size, stream.get()));
    pairs.push_back(m);
  }
  auto const run = [&](std::size_t turn) {
    memory const& m = pairs[turn];
    require(exec.reduce(op{}, m.to.data(), m.a.data(), m.b.data(), elements));
  };
  if (n <= large && !writes_all(stream, std::as_writable_bytes(pairs[0].to), {}, [&] { run(0); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  auto const [work_ns, copy_ns] = alternate(state, stream, turns, run, [&](std::size_t turn) {
    require(exec.copy(pairs[turn].to.data(), pairs[turn].a.data(), elements));
  });
  auto const payload            = static_cast<double>(size);
  set_counters(state, n, plan.bits_per_coordinate(), 3 * payload, payload, work_ns, copy_ns);
}

constexpr std::uint64_t sizes[] = {bucket, large, std::uint64_t{1} << 28};

template <class Element, class Codec>
void add_exchange_part(operation const& what,
                       std::string_view shown_as,
                       std::string_view preset,
                       Codec const& codec)
{
  for (std::uint64_t const n : sizes) {
    std::string const name = result_name(shown_as, preset, element_name<Element>, "cuda", n, 1);
    benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) {
        guarded(state, [&] { run_exchange_part<Element>(state, what, codec, n); });
      })
      ->Unit(benchmark::kMicrosecond)
      ->UseManualTime();
  }
}

void add_exchange_part(operation const& what)
{
  for_each_preset([&](std::string_view preset, auto const& codec) {
    if (codec.casts && !what.encodes && !what.decodes) { return; }  // no norms
    add_exchange_part<float>(what, what.name, preset, codec);
  });
  auto const& codec = tersum::presets::rotated_sat4;
  add_exchange_part<tersum::half>(what, what.name, "rotated_sat4", codec);
  add_exchange_part<tersum::bfloat16>(what, what.name, "rotated_sat4", codec);
  if (what.encodes) {
    auto const& on_tensor_cores = tersum::presets::rotated_sat4_tc;
    add_exchange_part<tersum::half>(what, what.name, "rotated_sat4_tc", on_tensor_cores);
    add_exchange_part<tersum::bfloat16>(what, what.name, "rotated_sat4_tc", on_tensor_cores);
  }
}

void add_reduce(std::string_view preset, auto const& codec)
{
  for (std::uint64_t const n : sizes) {
    std::string const name = result_name("reduce", preset, "float", "cuda", n, 1);
    benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) { guarded(state, [&] { run_reduce(state, codec, n); }); })
      ->Unit(benchmark::kMicrosecond)
      ->UseManualTime();
  }
}

[[maybe_unused]] bool const registered = [] {
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
  add_exchange_part(encode_operation);
  add_exchange_part(local_operation);
  add_exchange_part(norms_operation);
  add_exchange_part(decode_operation);
  for_each_rotator([](std::string_view rotator, auto const& codec) {
    add_exchange_part<float>(local_operation, "rotate", rotator, codec);
  });
  add_reduce("fp32", tersum::presets::fp32);
  for_each_preset([&](std::string_view preset, auto const& codec) {
    // Those with feedback and the literal ones send the same words as others here.
    if (preset != "thc_sat4" && preset != "rotated_sat4_ef") { add_reduce(preset, codec); }
  });
  return true;
}();

}  // namespace
