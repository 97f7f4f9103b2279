// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of shards and of values on a device over NCCL.

#include <tersum/interop/nccl.cuh>
#include <tersum/tersum.cuh>
#include <tersum/tersum.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/expected_parts.hpp>
#include <interop/nccl_exchanges.hpp>
#include <span>
#include <tersum_nccl_device/nccl_symmetric.cuh>
#include <type_traits>
#include <vector>

namespace tersum::tests {

namespace {

template <class Codec>
using sums_of      = summed_wire_of<typename Codec::payload_op, typename Codec::counts_type>;
using integer_sums = sums_of<std::remove_cvref_t<decltype(shards_in_integers)>>;
using lane_sums    = sums_of<std::remove_cvref_t<decltype(presets::summed_shards_sat4)>>;
// NCCL adds integers, and no lanes that saturate, which move as bytes.
static_assert(scatters_sums<nccl_transport, integer_sums>);
static_assert(!scatters_sums<nccl_transport, lane_sums>);

//! Where an exchange has its workspace: in the memory that all ranks reach, or, if there is none, in memory of its own.
[[nodiscard]] std::span<std::byte> workspace_in(std::span<std::byte> symmetric,
                                                device_memory const& own)
{
  return symmetric.empty() ? own.bytes() : symmetric;
}

//! @brief Exchanges of shards by collectives, each enqueued and from a graph, against what the loopback gave.
//! @param ways  Calls try(collective) for each: ways(plan, try).
template <class Expect, class Codec, class Ways>
void check_scattered(nccl_rank const& on,
                     nccl_transport const& nccl,
                     Expect const& expect,
                     Codec const& codec,
                     layout const& shape,
                     std::vector<std::uint64_t> const& cuts,
                     std::vector<std::vector<float>> const& want,
                     std::span<std::byte> symmetric,
                     Ways const& ways)
{
  cuda_executor const exec{on.stream};
  auto const plan = codec.plan(shape, {.size = on.ranks, .rank = on.rank}, cuts);
  device_memory const state(plan.state_bytes()),
    own(symmetric.empty() ? plan.workspace_bytes() : std::size_t{0}),
    gradient(shape.coordinates * sizeof(float)), shard(plan.shard_size() * sizeof(float));
  auto const workspace = workspace_in(symmetric, own);
  expect(want.size() == static_cast<std::size_t>(steps), "the loopback failed");
  exchanges shards{on, nccl, expect};
  shards.steps = want.size();
  shards.begin = [&] { return initialize(exec, plan, state.bytes(), 7); };
  shards.give  = [&](std::size_t step) {
    gradient.write(make_gradient(shape.coordinates, on.ranks, on.rank, static_cast<int>(step)), on);
  };
  shards.check = [&](std::size_t step) {
    expect(same(shard.read(), want[step]), "differs from the loopback");
  };
  ways(plan, [&](auto const& reduce) {
    for (bool const from_graph : {false, true}) {
      shards.run(
        [&] {
          return reduce_scatter_mean(
            exec, plan, gradient.floats(), shard.floats(), state.bytes(), workspace, reduce);
        },
        from_graph);
    }
  });
}

//! The same of values, in differences to those of the step before.
template <class Expect, class Ways>
void check_published(nccl_rank const& on,
                     nccl_transport const& nccl,
                     Expect const& expect,
                     layout const& shape,
                     bool uneven,
                     std::span<std::byte> symmetric,
                     Ways const& ways)
{
  cuda_executor const exec{on.stream};
  auto const held = expected_differences(shape, uneven, on.ranks);
  auto const cuts = shard_cuts(shape.coordinates, on.ranks, uneven);
  auto const plan = presets::values<4, difference_feedback>{}.plan(
    shape, {.size = on.ranks, .rank = on.rank}, cuts);
  device_memory const state(plan.state_bytes()),
    own(symmetric.empty() ? plan.workspace_bytes() : std::size_t{0}),
    shard(plan.shard_size() * sizeof(float)), all(shape.coordinates * sizeof(float));
  auto const workspace = workspace_in(symmetric, own);
  expect(held.size() == static_cast<std::size_t>(steps), "the loopback of values failed");
  exchanges values{on, nccl, expect};
  values.steps = held.size();
  values.begin = [&] {
    all.write(std::vector<float>(shape.coordinates), on);
    return initialize(exec, plan, state.bytes(), 7);
  };
  values.give = [&](std::size_t step) {
    auto const whole = make_gradient(shape.coordinates, on.ranks, 0, static_cast<int>(step));
    shard.write(std::span{whole}.subspan(plan.shard_begin(on.rank), plan.shard_size()), on);
  };
  values.check = [&](std::size_t step) {
    expect(same(all.read(), held[step]), "values differ from the loopback");
  };
  ways(plan, [&](auto const& gather) {
    for (bool const from_graph : {false, true}) {
      values.run(
        [&] {
          return all_gather_values(
            exec, plan, shard.floats(), all.floats(), state.bytes(), workspace, gather);
        },
        from_graph);
    }
  });
}

//! Shards of which NCCL adds the codes: equal ones, and others of which one is empty.
template <class Expect, class Ways>
void check_summed(nccl_rank const& on,
                  nccl_transport const& nccl,
                  Expect const& expect,
                  bool uneven,
                  std::span<std::byte> symmetric,
                  Ways const& ways)
{
  layout const equal{.coordinates = 2048 * static_cast<std::uint64_t>(on.ranks)};
  layout const& shape = uneven ? shapes[2] : equal;
  check_scattered(on,
                  nccl,
                  expect,
                  shards_in_integers,
                  shape,
                  shard_cuts(shape.coordinates, on.ranks, uneven),
                  expected_summed_shards(shape, uneven, on.ranks, on.rank),
                  symmetric,
                  [&](auto const& plan, auto const& by) {
                    expect((plan.part_words(0) == plan.part_words(on.ranks - 1)) ==
                             (!uneven || on.ranks == 1),
                           "the parts of sums have other sizes than they should");
                    ways(plan, by);
                  });
}

//! Calls body(expect), and returns how often what was expected did not hold.
template <class Body>
int count_failures(nccl_rank const& on, Body const& body)
{
  int failures = 0;
  body([&](bool ok, char const* what) {
    if (ok) { return; }
    ++failures;
    std::printf("rank %d of %d: shards: %s\n", on.rank, on.ranks, what);
  });
  return failures;
}

}  // namespace

int check_nccl_shards(nccl_rank const& on)
{
  nccl_transport const nccl(on.communicator, on.stream, std::chrono::seconds(60));
  cuda_executor const exec{on.stream};
  auto const moved = [&](auto const& plan, auto const& by) {
    device_memory const scratch(scratch_bytes(plan));
    by(reduce_over<schedule::direct>(nccl, exec, scratch.bytes()));
  };
  auto const sums = [&](auto const& plan, auto const& by) {
    device_memory const scratch(scratch_bytes(plan));
    // Norms are floats, which are added in the order of the ranks.
    auto const norms = reduce_over<schedule::direct>(nccl, exec, scratch.bytes());
    auto const codes = [&](auto const& reduce) {
      by([&](auto const& round) {
        if constexpr (requires { round.sum; }) {
          return reduce(round);
        } else {
          return norms(round);
        }
      });
    };
    codes(reduce_over<schedule::in_wire>(nccl, exec));
    by(norms);
  };
  return count_failures(on, [&](auto const& expect) {
    for (bool const uneven : {false, true}) {
      layout const& shape = shapes[uneven ? 2 : 1];
      check_scattered(on,
                      nccl,
                      expect,
                      presets::sharded<2, error_feedback>{},
                      shape,
                      shard_cuts(shape.coordinates, on.ranks, uneven),
                      expected_shards(shape, uneven, on.ranks, on.rank),
                      {},
                      moved);
      check_published(on, nccl, expect, shape, uneven, {}, moved);
      check_summed(on, nccl, expect, uneven, {}, sums);
    }
  });
}

int check_nccl_symmetric_shards(nccl_rank const& on, symmetric_shape const& shape_of)
{
  constexpr std::size_t room = 1 << 18;
  void* data                 = nullptr;
  if (ncclMemAlloc(&data, room) != ncclSuccess) { return shape_of.must_run ? 1 : 0; }
  std::span const memory{static_cast<std::byte*>(data), room};
  int failures = 0;
  {
    nccl_transport const nccl(on.communicator, on.stream, std::chrono::seconds(60));
    nccl_symmetric const symmetric{
      on.communicator, cuda_executor{on.stream}, memory, shape_of.blocks};
    auto const way = [&](auto const&, auto const& by) { by(std::cref(symmetric)); };
    failures       = count_failures(on, [&](auto const& expect) {
      if (!symmetric.check().ok()) { return expect(!shape_of.must_run, "ranks do not reach"); }
      for (bool const uneven : {false, true}) {
        layout const& shape = shapes[uneven ? 2 : 1];
        check_scattered(on,
                        nccl,
                        expect,
                        presets::sharded<2, error_feedback>{},
                        shape,
                        shard_cuts(shape.coordinates, on.ranks, uneven),
                        expected_shards(shape, uneven, on.ranks, on.rank),
                        memory,
                        way);
        check_published(on, nccl, expect, shape, uneven, memory, way);
        check_summed(on, nccl, expect, uneven, memory, way);
      }
    });
  }
  ncclMemFree(data);
  return failures;
}

}  // namespace tersum::tests
