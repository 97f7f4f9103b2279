// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Several ranks of one process, on the CPU executor or another one of host memory: gradients in, means out.

#pragma once

#include "count_allocations.hpp"

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief The ranks of a loopback exchange with their memory; every call of `mean` is one step.
template <class Codec, class Element = float, class Executor = cpu_executor>
class loopback_run {
 public:
  using gradients = std::vector<std::vector<Element>>;

  loopback_run(
    Codec const& codec, layout const& gradient, int world, std::uint64_t seed, Executor exec = {})
    : exec_(exec)
  {
    values_.resize(static_cast<std::size_t>(world), std::vector<Element>(gradient.coordinates));
    for (int k = 0; k < world; ++k) {
      auto const plan = codec.plan(gradient, {.size = world, .rank = k});
      REQUIRE(plan.check() == status{});
      state_.emplace_back(plan.state_bytes() / sizeof(word4) + 1);
      workspace_.emplace_back(plan.workspace_bytes() / sizeof(word4) + 1);
      ranks_.push_back({plan,
                        values_[static_cast<std::size_t>(k)],
                        std::as_writable_bytes(std::span{state_.back()}),
                        std::as_writable_bytes(std::span{workspace_.back()})});
      REQUIRE(initialize(exec_, plan, ranks_.back().state, seed) == status{});
    }
  }

  //! One step: every rank's result.
  gradients const& exchange(gradients const& in, reduction_order order = reduction_order::ring)
  {
    give(in);
    status done;
    auto const asked = allocations_of([&] { done = loopback_exchange(exec_, ranks_, order); });
    REQUIRE(done == status{});
    if constexpr (std::same_as<Executor, cpu_executor>) {
      CHECK((asked == 0 || exec_.threads > 1));
    }
    return values_;
  }

  [[nodiscard]] int world() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] tersum::plan<Codec> const& plan(int rank = 0) const { return at(rank).plan; }
  [[nodiscard]] std::vector<Element> const& values(int rank) const
  {
    return values_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::span<std::byte> state(int rank = 0) const { return at(rank).state; }
  [[nodiscard]] std::span<std::byte> workspace(int rank = 0) const { return at(rank).workspace; }
  [[nodiscard]] state_header const& header(int rank = 0) const
  {
    return *reinterpret_cast<state_header const*>(state(rank).data());
  }
  [[nodiscard]] tensor_record const& record(int tensor, int rank = 0) const
  {
    return reinterpret_cast<tensor_record const*>(state(rank).data() +
                                                  plan().offset("records"))[tensor];
  }
  [[nodiscard]] std::span<residual_element<Codec> const> residual(int rank = 0) const
  {
    return {reinterpret_cast<residual_element<Codec> const*>(state(rank).data() +
                                                             plan().offset("residual")),
            plan().own_coordinates()};
  }

 protected:
  void give(gradients const& in)
  {
    for (std::size_t k = 0; k < values_.size(); ++k) {
      std::copy(in[k].begin(), in[k].end(), values_[k].begin());
    }
  }
  [[nodiscard]] loopback_rank<Codec, Element> const& at(int rank) const
  {
    return ranks_[static_cast<std::size_t>(rank)];
  }

  Executor exec_;

 private:
  gradients values_;
  std::vector<std::vector<word4>> state_, workspace_;
  std::vector<loopback_rank<Codec, Element>> ranks_;
};

//! @brief |mean of the ranks - estimate|^2 / |mean of the ranks|^2.
template <class Element>
[[nodiscard]] double nmse(std::vector<std::vector<Element>> const& in,
                          std::vector<Element> const& estimate)
{
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < estimate.size(); ++i) {
    double mean = 0;
    for (auto const& g : in) {
      mean += static_cast<double>(to_float(g[i])) / static_cast<double>(in.size());
    }
    double const error = mean - static_cast<double>(to_float(estimate[i]));
    lost += error * error;
    all += mean * mean;
  }
  return lost / all;
}

}  // namespace tersum::tests
