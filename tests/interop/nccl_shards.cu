// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of shards and of values on a device over NCCL.

#include <tersum/interop/nccl_pieces.cuh>
#include <tersum/sharded_presets.hpp>
#include <tersum/tersum.cuh>

#include <cuda_runtime.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <interop/twin.hpp>
#include <span>
#include <type_traits>
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
      expect(nccl.wait().ok(), "NCCL failed");
      check(step);
    }
    if (replay != nullptr) { cudaGraphExecDestroy(replay); }
  }
};
// Clang 14 deduces none for aggregates.
template <class Expect>
exchanges(nccl_rank const&, nccl_transport const&, Expect const&) -> exchanges<Expect>;

template <class Codec>
using sums_of      = summed_wire_of<typename Codec::payload_op, typename Codec::counts_type>;
using integer_sums = sums_of<std::remove_cvref_t<decltype(presets::summed_shards_wide4)>>;
using lane_sums    = sums_of<std::remove_cvref_t<decltype(presets::summed_shards_sat4)>>;
// NCCL adds integers, and no lanes that saturate; in pieces it adds none of these.
static_assert(scatters_sums<nccl_transport, integer_sums>);
static_assert(!scatters_sums<nccl_transport, lane_sums>);
static_assert(!std::invocable<nccl_pieces<> const&, integer_sums const&>);

//! Shards of which NCCL adds the codes: equal ones, and others of which one is empty; each step enqueued, and from a graph.
template <class Expect>
void check_summed(nccl_rank const& on, nccl_transport const& nccl, Expect const& expect)
{
  cuda_executor const exec{on.stream};
  layout const equal{.coordinates = 2048 * static_cast<std::uint64_t>(on.ranks)};
  for (bool const uneven : {false, true}) {
    layout const& shape = uneven ? shapes[2] : equal;
    auto const cuts     = shard_cuts(shape.coordinates, on.ranks, uneven);
    auto const want     = expected_summed_shards(shape, uneven, on.ranks, on.rank);
    auto const plan =
      presets::summed_shards_wide4.plan(shape, {.size = on.ranks, .rank = on.rank}, cuts);
    expect(want.size() == static_cast<std::size_t>(steps), "the loopback of sums failed");
    expect((plan.part_words(0) == plan.part_words(on.ranks - 1)) == (!uneven || on.ranks == 1),
           "the parts of sums have other sizes than they should");
    device_memory const state(plan.state_bytes()), workspace(plan.workspace_bytes()),
      scratch(scratch_bytes(plan)), gradient(shape.coordinates * sizeof(float)),
      shard(plan.shard_size() * sizeof(float));
    exchanges sums{on, nccl, expect};
    sums.steps = want.size();
    sums.begin = [&] { return initialize(exec, plan, state.bytes(), 7); };
    sums.give  = [&](std::size_t step) {
      gradient.write(make_gradient(shape.coordinates, on.ranks, on.rank, static_cast<int>(step)),
                     on);
    };
    sums.check = [&](std::size_t step) {
      expect(same(shard.read(), want[step]), "sums differ from the loopback");
    };
    // Norms are floats, which are added in the order of the ranks.
    auto const norms  = reduce_over<schedule::direct>(nccl, exec, scratch.bytes());
    auto const codes  = reduce_over<schedule::in_wire>(nccl, exec);
    auto const reduce = [&](auto const& round) {
      if constexpr (requires { round.sum; }) {
        return codes(round);
      } else {
        return norms(round);
      }
    };
    for (bool const from_graph : {false, true}) {
      sums.run(
        [&] {
          return reduce_scatter_mean(exec,
                                     plan,
                                     gradient.floats(),
                                     shard.floats(),
                                     state.bytes(),
                                     workspace.bytes(),
                                     reduce);
        },
        from_graph);
    }
  }
}

}  // namespace

int check_nccl_shards(nccl_rank const& on)
{
  nccl_transport const nccl(on.communicator, on.stream, std::chrono::seconds(60));
  nccl_transport const beside(on.communicator, on.beside, std::chrono::seconds(60));
  cuda_executor const exec{on.stream};
  int failures      = 0;
  auto const expect = [&](bool ok, char const* what) {
    if (ok) { return; }
    ++failures;
    std::printf("rank %d of %d: shards: %s\n", on.rank, on.ranks, what);
  };
  for (bool const uneven : {false, true}) {
    layout const& shape = shapes[uneven ? 2 : 1];
    auto const cuts     = shard_cuts(shape.coordinates, on.ranks, uneven);
    auto const want     = expected_shards(shape, uneven, on.ranks, on.rank);
    auto const plan = presets::sharded_2_ef.plan(shape, {.size = on.ranks, .rank = on.rank}, cuts);
    device_memory const state(plan.state_bytes()), workspace(plan.workspace_bytes()),
      scratch(scratch_bytes(plan, 2)), gradient(shape.coordinates * sizeof(float)),
      shard(plan.shard_size() * sizeof(float));
    expect(want.size() == static_cast<std::size_t>(steps), "the loopback failed");

    exchanges shards{on, nccl, expect};
    shards.steps = want.size();
    shards.begin = [&] { return initialize(exec, plan, state.bytes(), 7); };
    shards.give  = [&](std::size_t step) {
      gradient.write(make_gradient(shape.coordinates, on.ranks, on.rank, static_cast<int>(step)),
                     on);
    };
    shards.check = [&](std::size_t step) {
      expect(same(shard.read(), want[step]), "differs from the loopback");
    };
    auto const way = [&](auto const& reduce, bool from_graph) {
      shards.run(
        [&] {
          return reduce_scatter_mean(exec,
                                     plan,
                                     gradient.floats(),
                                     shard.floats(),
                                     state.bytes(),
                                     workspace.bytes(),
                                     reduce);
        },
        from_graph);
    };
    nccl_pieces<schedule::direct> const pieces{beside, exec, scratch.bytes(), 2};
    for (bool const from_graph : {false, true}) {
      way(reduce_over<schedule::direct>(nccl, exec, scratch.bytes()), from_graph);
      way(std::cref(pieces), from_graph);
    }

    auto const held = expected_differences(shape, uneven, on.ranks);
    auto const gather =
      presets::differences_4.plan(shape, {.size = on.ranks, .rank = on.rank}, cuts);
    device_memory const kept(gather.state_bytes()), work(gather.workspace_bytes()),
      own(gather.shard_size() * sizeof(float)), all(shape.coordinates * sizeof(float));
    expect(held.size() == static_cast<std::size_t>(steps), "the loopback of values failed");
    exchanges values{on, nccl, expect};
    values.steps = held.size();
    values.begin = [&] {
      all.write(std::vector<float>(shape.coordinates), on);
      return initialize(exec, gather, kept.bytes(), 7);
    };
    values.give = [&](std::size_t step) {
      auto const whole = make_gradient(shape.coordinates, on.ranks, 0, static_cast<int>(step));
      own.write(std::span{whole}.subspan(gather.shard_begin(on.rank), gather.shard_size()), on);
    };
    values.check = [&](std::size_t step) {
      expect(same(all.read(), held[step]), "values differ from the loopback");
    };
    auto const publish = [&](auto const& reduce, bool from_graph) {
      values.run(
        [&] {
          return all_gather_values(
            exec, gather, own.floats(), all.floats(), kept.bytes(), work.bytes(), reduce);
        },
        from_graph);
    };
    for (bool const from_graph : {false, true}) {
      publish(reduce_over(nccl, exec), from_graph);
      publish(std::cref(pieces), from_graph);
    }
  }
  check_summed(on, nccl, expect);
  return failures;
}

}  // namespace tersum::tests
