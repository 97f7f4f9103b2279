// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Several ranks on the CPU executor, one stage of an exchange at a time, with everything open to view.

#pragma once

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief The ranks of an exchange with a quantized codec and their memory. Per step: `measure`, `agree`, `encode`,
//! `reduce`, `decode`.
template <class Codec>
class staged_run {
 public:
  staged_run(Codec const& codec, layout const& gradient, int world, std::uint64_t seed)
  {
    for (int k = 0; k < world; ++k) {
      plans_.push_back(codec.plan(gradient, {.size = world, .rank = k}));
      REQUIRE(plans_.back().check() == status{});
      values_.emplace_back(gradient.coordinates);
      states_.emplace_back(plans_.back().state_bytes() / sizeof(word4) + 1);
      workspaces_.emplace_back(plans_.back().workspace_bytes() / sizeof(word4) + 1);
      REQUIRE(initialize(exec_, plans_.back(), state(k), seed) == status{});
    }
  }

  void measure(std::vector<std::vector<float>> const& in)
  {
    values_ = in;
    for (int k = 0; k < world(); ++k) {
      REQUIRE(tersum::measure(exec_, plans_[at(k)], values_[at(k)], state(k), workspace(k)) ==
              status{});
    }
  }
  void agree(reduction_order order)
  {
    all_reduce(order, [&](int k) { return agreed_wire(plans_[at(k)], workspace(k)); });
  }
  void encode()
  {
    for (int k = 0; k < world(); ++k) {
      REQUIRE(tersum::encode(exec_, plans_[at(k)], values_[at(k)], state(k), workspace(k)) ==
              status{});
    }
  }
  void reduce(reduction_order order)
  {
    all_reduce(order, [&](int k) { return payload_wire(plans_[at(k)], workspace(k)); });
    all_reduce(order, [&](int k) { return bypass_wire(plans_[at(k)], workspace(k)); });
  }
  void decode()
  {
    for (int k = 0; k < world(); ++k) {
      REQUIRE(tersum::decode(exec_, plans_[at(k)], values_[at(k)], state(k), workspace(k)) ==
              status{});
    }
  }

  [[nodiscard]] int world() const { return static_cast<int>(plans_.size()); }
  [[nodiscard]] tersum::plan<Codec> const& plan() const { return plans_[0]; }
  [[nodiscard]] std::vector<float> const& values(int rank) const { return values_[at(rank)]; }

  //! The agreed scalars that a rank holds.
  [[nodiscard]] std::vector<double> agreed(int rank)
  {
    auto const wire = agreed_wire(plan(), workspace(rank));
    std::vector<double> out;
    for (auto const& scalar : std::span{wire.data, wire.count}) {
      out.push_back(static_cast<double>(to_float(scalar)));
    }
    return out;
  }

  //! @brief The lanes of the payload that a rank holds, read bit by bit.
  //! @param ranks  How many ranks' codes they sum: guard lanes hold `max_level` more for each.
  [[nodiscard]] std::vector<int> codes(int rank, int ranks)
  {
    constexpr int bits = Codec::reducer_type::lane_bits;
    auto const bytes   = workspace(rank).subspan(plan().offset("payload"), plan().payload_bytes());
    std::vector<int> out;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += bits) {
      int lane = 0;
      for (std::size_t b = 0; b < bits; ++b) {
        auto const byte = static_cast<unsigned>(bytes[(bit + b) / 8]);
        lane += static_cast<int>(byte >> ((bit + b) % 8) & 1u) << b;
      }
      if (Codec::reducer_type::biased) {
        lane -= ranks * Codec::quantizer_type::max_level;
      } else if (lane >= 1 << (bits - 1)) {
        lane -= 1 << bits;
      }
      out.push_back(lane);
    }
    return out;
  }

  [[nodiscard]] state_header const& header(int rank)
  {
    return *reinterpret_cast<state_header const*>(state(rank).data());
  }
  [[nodiscard]] tensor_record const& record(int rank)
  {
    return *reinterpret_cast<tensor_record const*>(state(rank).data() + plan().offset("records"));
  }
  [[nodiscard]] chunk_step const& step(int rank, std::size_t chunk)
  {
    return reinterpret_cast<chunk_step const*>(workspace(rank).data())[chunk];
  }
  [[nodiscard]] std::span<float const> residual(int rank)
  {
    auto const* const first = state(rank).data() + plan().offset("residual");
    return {reinterpret_cast<float const*>(first), plan().coordinates()};
  }
  [[nodiscard]] std::span<std::byte> state(int rank)
  {
    return std::as_writable_bytes(std::span{states_[at(rank)]});
  }
  [[nodiscard]] std::span<std::byte> workspace(int rank)
  {
    return std::as_writable_bytes(std::span{workspaces_[at(rank)]});
  }

 private:
  template <class WireOf>
  void all_reduce(reduction_order order, WireOf wire_of)
  {
    std::vector<decltype(wire_of(0))> wires;
    for (int k = 0; k < world(); ++k) { wires.push_back(wire_of(k)); }
    using wire_type = typename decltype(wires)::value_type;
    REQUIRE(loopback_all_reduce(exec_, std::span<wire_type const>{wires}, order) == status{});
  }
  [[nodiscard]] static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  cpu_executor exec_;
  std::vector<tersum::plan<Codec>> plans_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<word4>> states_, workspaces_;
};

}  // namespace tersum::tests
