// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of shards, and of values, among several ranks on any executor, recorded byte by byte.

#pragma once

#include "count_allocations.hpp"
#include "exchange_fixture.hpp"

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/exchange/wires.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <type_traits>
#include <vector>

namespace tersum::tests {

using boundaries = std::vector<std::uint64_t>;

//! @brief What is exchanged, and how often: gradients of `Given` whose mean is written to shards as `Got`, or shards of `Given` whose
//! values all ranks get as `Got`.
template <class Codec, class Given, class Got = Given>
struct shard_case {
  Codec codec{};
  layout gradient{};
  int world = 2;
  boundaries cuts{};  //!< None: equal parts.
  bool misaligned =
    false;  //!< Gradients and shards begin one element after a multiple of 16 bytes.
  int steps           = 2;
  int non_finite_step = -1;
};

//! @brief Scales of three sizes, and zeros.
template <class Scale>
void write_scales(std::span<Scale> scales)
{
  for (std::size_t i = 0; i < scales.size(); ++i) {
    float const size = std::ldexp(1.0f, -static_cast<int>(i % 3) * 4);
    scales[i]        = i % 7 == 0 ? 0.0f : size * (1.0f + 0.1f * static_cast<float>(i % 5));
  }
}

//! @brief The ranks and their memory. The values that a rank holds are zeros at first.
template <class Buffer, class Codec, class Given, class Got>
class shard_run {
 public:
  using rank_type = loopback_shard<Codec, Given, Got>;

  template <class Executor>
  shard_run(Executor const& exec,
            shard_case<Codec, Given, Got> const& c,
            std::byte fill     = {},
            std::uint64_t seed = 77)
    : case_(c)
  {
    for (int rank = 0; rank < c.world; ++rank) {
      auto const plan = plan_of(rank);
      require_ok(plan.check());
      auto const memory = [&](std::deque<Buffer>& of, std::size_t bytes, std::size_t misplaced) {
        return of.emplace_back(bytes, c.misaligned ? misplaced : 0, fill).contents();
      };
      std::size_t const all = plan.coordinates(), own = plan.shard_size();
      std::size_t const put = publishing<Codec> ? own : all, out = publishing<Codec> ? all : own;
      auto const given     = memory(given_, put * sizeof(Given), sizeof(Given));
      auto const got       = memory(got_, out * sizeof(Got), sizeof(Got));
      auto const state     = memory(states_, plan.state_bytes(), 0);
      auto const workspace = memory(workspaces_, plan.workspace_bytes(), 0);
      if constexpr (publishing<Codec>) { got_.back().write(byte_string(got.size())); }
      ranks_.push_back({plan,
                        {reinterpret_cast<Given*>(given.data()), put},
                        {reinterpret_cast<Got*>(got.data()), out},
                        state,
                        workspace});
      require_ok(initialize(exec, plan, state, seed));
      if constexpr (in_metric<Codec> && !publishing<Codec>) {
        std::vector<metric_scale<Codec>> scales(metric_scales(plan, state).size());
        write_scales(std::span{scales});
        states_.back().write(std::as_bytes(std::span{scales}), plan.offset("scales"));
      }
    }
  }

  //! One step: what every rank gets.
  //! @param in    Every rank's gradient, or the values of all ranks' shards.
  //! @param call  Is given the exchange as a function without arguments.
  template <class Executor, class Call = perform_at_once>
  std::vector<std::vector<Got>> exchange(
    Executor const& exec,
    std::conditional_t<publishing<Codec>,
                       std::vector<Given>,
                       std::vector<std::vector<Given>>> const& in,
    Call const& call = {})
  {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if constexpr (publishing<Codec>) {
        auto const& plan = ranks_[rank].plan;
        auto const begin = static_cast<std::size_t>(plan.shard_begin(static_cast<int>(rank)));
        given_[rank].write(std::as_bytes(std::span{in}.subspan(begin, plan.shard_size())));
      } else {
        given_[rank].write(std::as_bytes(std::span{in[rank]}));
      }
    }
    status done;
    auto const once  = [&] { return loopback_exchange(exec, ranks_, reduction_order::direct); };
    auto const asked = allocations_of([&] { done = call(once); });
    require_ok(done);
    if constexpr (std::same_as<Executor, cpu_executor>) { CHECK((asked == 0 || exec.threads > 1)); }
    std::vector<std::vector<Got>> out;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      auto const bytes = got_[rank].read(0, got_[rank].contents().size());
      auto& values     = out.emplace_back(bytes.size() / sizeof(Got));
      if (!bytes.empty()) { std::memcpy(values.data(), bytes.data(), bytes.size()); }
    }
    return out;
  }

  [[nodiscard]] rank_type const& operator[](std::size_t rank) const { return ranks_[rank]; }
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  [[nodiscard]] byte_string workspace(std::size_t rank, std::size_t offset, std::size_t bytes) const
  {
    return workspaces_[rank].read(offset, bytes);
  }
  [[nodiscard]] byte_string state(std::size_t rank) const
  {
    return states_[rank].read(0, states_[rank].contents().size());
  }

 private:
  [[nodiscard]] auto plan_of(int rank) const
  {
    return case_.codec.plan(case_.gradient, {.size = case_.world, .rank = rank}, case_.cuts);
  }

  shard_case<Codec, Given, Got> case_;
  std::deque<Buffer> given_, got_, states_, workspaces_;
  std::vector<rank_type> ranks_;
};

//! @brief The wire of a rank's codes of all shards.
template <class Codec>
[[nodiscard]] auto codes_wire(plan<Codec> const& plan, std::span<std::byte> workspace)
{
  if constexpr (publishing<Codec>) {
    return published_wire(plan, workspace);
  } else if constexpr (summing<Codec>) {
    return summed_wire(plan, workspace);
  } else {
    return shards_wire(plan, workspace);
  }
}

//! @brief Gradients of all ranks in a step, or the values of all shards.
template <class Codec, class Given, class Got>
[[nodiscard]] auto given_in_step(shard_case<Codec, Given, Got> const& c, int step)
{
  auto const of_rank = [&](int rank) {
    return make_gradient<Given>(c.gradient.coordinates, rank, step, step == c.non_finite_step);
  };
  if constexpr (publishing<Codec>) {
    return of_rank(0);
  } else {
    std::vector<std::vector<Given>> in;
    for (int rank = 0; rank < c.world; ++rank) { in.push_back(of_rank(rank)); }
    return in;
  }
}

//! @brief All that the ranks sent to each other and ended with.
template <class Buffer,
          class Executor,
          class Codec,
          class Given,
          class Got,
          class Call = perform_at_once>
[[nodiscard]] exchange_trace record_shards(Executor const& exec,
                                           shard_case<Codec, Given, Got> const& c,
                                           std::byte fill,
                                           Call const& call = {})
{
  exchange_trace trace;
  shard_run<Buffer, Codec, Given, Got> run{exec, c, fill};
  for (int step = 0; step < c.steps; ++step) {
    auto const out = run.exchange(exec, given_in_step(c, step), call);
    for (int rank = 0; rank < c.world; ++rank) {
      auto const r    = static_cast<std::size_t>(rank);
      auto const wire = codes_wire(run[r].plan, run[r].workspace);
      using element   = typename decltype(wire)::element;
      for (int part = 0; part < c.world; ++part) {
        std::size_t const first = run[r].plan.offset(publishing<Codec> ? "gathered" : "payload") +
                                  sizeof(element) * wire.begin(part);
        trace.push_back({"part", step, rank, run.workspace(r, first, wire.bytes(part))});
      }
      auto const got = std::as_bytes(std::span{out[r]});
      trace.push_back({"result", step, rank, with_one_nan<Got>({got.begin(), got.end()})});
      trace.push_back({"state", step, rank, run.state(r)});
    }
  }
  return trace;
}

//! @brief Calls check(case) for sizes about a chunk's, for shards that cut chunks and tensors anywhere, and for empty shards.
template <class Given, class Got, class Codec, class Check>
void for_each_shard_case(Codec const& codec, std::uint64_t several, Check const& check)
{
  using a_case                 = shard_case<Codec, Given, Got>;
  constexpr std::uint64_t size = Codec::chunk_size;
  for (std::uint64_t const d : {std::uint64_t{0}, std::uint64_t{1}, size - 1, size, size + 1}) {
    check(a_case{.codec = codec, .gradient = {d}, .world = 3});
  }
  check(a_case{.codec = codec, .gradient = {several}, .world = 1});
  check(a_case{.codec = codec, .gradient = {several}, .world = 4, .misaligned = true});
  // Whole chunks; a boundary within one; three within one; empty shards at both ends and between.
  std::uint64_t const end = 4 * size + 17;
  check(
    a_case{.codec    = codec,
           .gradient = {end},
           .world    = 8,
           .cuts  = {0, 0, size, 2 * size + 5, 2 * size + 5, 3 * size + 1, 3 * size + 9, end, end},
           .steps = 3,
           .non_finite_step = 1});
  // Tensors, of which some bypass, cut anywhere.
  layout const bucket       = odd_bucket().gradient();
  std::uint64_t const whole = bucket.coordinates;
  check(a_case{.codec      = codec,
               .gradient   = bucket,
               .world      = 5,
               .cuts       = {0, 700, 1026, 1027, whole - 3, whole},
               .misaligned = true});
}

}  // namespace tersum::tests
