// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Several ranks of one process, on the CPU executor or another one of host memory: gradients in, means out.

#pragma once

#include "exchange_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief The ranks of a loopback exchange with their memory; every call of `exchange` is one step.
template <class Codec, class Element = float, class Executor = cpu_executor>
class loopback_run : public exchange_run<host_buffer, Codec, Element> {
  using base = exchange_run<host_buffer, Codec, Element>;

 public:
  using gradients = std::vector<std::vector<Element>>;

  loopback_run(
    Codec const& codec, layout const& gradient, int world, std::uint64_t seed, Executor exec = {})
    : base{exec, {.codec = codec, .gradient = gradient, .world = world, .seed = seed}}, exec_(exec),
      values_(this->size(), std::vector<Element>(gradient.coordinates))
  {
  }

  //! One step: every rank's result.
  gradients const& exchange(gradients const& in, reduction_order order = reduction_order::ring)
  {
    this->case_.order = order;
    keep(base::exchange(exec_, in));
    return values_;
  }

  [[nodiscard]] int world() const { return static_cast<int>(this->size()); }
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
  //! What the ranks got is there until the next step, in the same place.
  void keep(gradients const& got)
  {
    for (std::size_t k = 0; k < got.size(); ++k) { std::ranges::copy(got[k], values_[k].begin()); }
  }
  [[nodiscard]] loopback_rank<Codec, Element> const& at(int rank) const
  {
    return (*this)[static_cast<std::size_t>(rank)];
  }

  Executor exec_;

 private:
  gradients values_;
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
