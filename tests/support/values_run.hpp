// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of values among several ranks on any executor, recorded byte by byte.

#pragma once

#include "shard_run.hpp"

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief The ranks and their memory. What they hold is zeros at first.
template <class Buffer, class Codec, class ShardElement, class Element>
class values_run {
 public:
  using rank_type = loopback_values<Codec, ShardElement, Element>;

  template <class Executor>
  values_run(Executor const& exec,
             shard_case<Codec, ShardElement, Element> const& c,
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
      auto const given =
        memory(shards_, plan.shard_size() * sizeof(ShardElement), sizeof(ShardElement));
      auto const held      = memory(values_, plan.coordinates() * sizeof(Element), sizeof(Element));
      auto const state     = memory(states_, plan.state_bytes(), 0);
      auto const workspace = memory(workspaces_, plan.workspace_bytes(), 0);
      values_.back().write(byte_string(held.size()));
      ranks_.push_back({plan,
                        {reinterpret_cast<ShardElement*>(given.data()), plan.shard_size()},
                        {reinterpret_cast<Element*>(held.data()), plan.coordinates()},
                        state,
                        workspace});
      require_ok(initialize(exec, plan, state, seed));
    }
  }

  //! One step: the values of all ranks' shards in, what every rank holds afterwards out.
  template <class Executor>
  std::vector<std::vector<Element>> exchange(Executor const& exec,
                                             std::vector<ShardElement> const& in)
  {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      auto const begin =
        static_cast<std::size_t>(ranks_[rank].plan.shard_begin(static_cast<int>(rank)));
      shards_[rank].write(
        std::as_bytes(std::span{in}.subspan(begin, ranks_[rank].plan.shard_size())));
    }
    status done;
    auto const asked = allocations_of(
      [&] { done = loopback_all_gather_values(exec, std::span<rank_type const>{ranks_}); });
    require_ok(done);
    if constexpr (std::same_as<Executor, cpu_executor>) { CHECK((asked == 0 || exec.threads > 1)); }
    std::vector<std::vector<Element>> out;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) { out.push_back(held(rank)); }
    return out;
  }

  //! What a rank holds.
  [[nodiscard]] std::vector<Element> held(std::size_t rank) const
  {
    auto const bytes = values_[rank].read(0, values_[rank].contents().size());
    std::vector<Element> out(bytes.size() / sizeof(Element));
    if (!bytes.empty()) { std::memcpy(out.data(), bytes.data(), bytes.size()); }
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

  shard_case<Codec, ShardElement, Element> case_;
  std::deque<Buffer> shards_, values_, states_, workspaces_;
  std::vector<rank_type> ranks_;
};

//! @brief All that the ranks sent to each other and ended with.
template <class Buffer, class Executor, class Codec, class ShardElement, class Element>
[[nodiscard]] exchange_trace record_values(Executor const& exec,
                                           shard_case<Codec, ShardElement, Element> const& c,
                                           std::byte fill)
{
  exchange_trace trace;
  values_run<Buffer, Codec, ShardElement, Element> run{exec, c, fill};
  for (int step = 0; step < c.steps; ++step) {
    auto const out = run.exchange(
      exec,
      make_gradient<ShardElement>(c.gradient.coordinates, 0, step, step == c.non_finite_step));
    for (int rank = 0; rank < c.world; ++rank) {
      auto const r    = static_cast<std::size_t>(rank);
      auto const wire = published_wire(run[r].plan, run[r].workspace);
      for (int part = 0; part < c.world; ++part) {
        std::size_t const first = run[r].plan.offset("gathered") + 4 * wire.begin(part);
        trace.push_back({"part", step, rank, run.workspace(r, first, wire.bytes(part))});
      }
      auto const values = std::as_bytes(std::span{out[r]});
      trace.push_back(
        {"values", step, rank, with_one_nan<Element>({values.begin(), values.end()})});
      trace.push_back({"state", step, rank, run.state(r)});
    }
  }
  return trace;
}

}  // namespace tersum::tests
