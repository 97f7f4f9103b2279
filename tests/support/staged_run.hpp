// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Several ranks on the CPU executor, one stage of an exchange at a time, with everything open to view.

#pragma once

#include "loopback_run.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief The ranks of an exchange and their memory. Per step: `measure`, `agree`, `encode`, `reduce`, `decode`.
template <class Codec>
class staged_run : public loopback_run<Codec> {
 public:
  using loopback_run<Codec>::loopback_run;
  using loopback_run<Codec>::plan;
  using loopback_run<Codec>::workspace;
  using loopback_run<Codec>::world;

  void measure(std::vector<std::vector<float>> const& in)
  {
    this->write(in);
    stage([](auto const&... given) { return tersum::measure(given...); });
  }
  void agree(reduction_order order)
  {
    all_reduce(order, [&](int k) { return agreed_wire(plan(k), workspace(k)); });
  }
  void encode()
  {
    stage([](auto const&... given) { return tersum::encode(given...); });
  }
  void reduce(reduction_order order)
  {
    all_reduce(order, [&](int k) { return payload_wire(plan(k), workspace(k)); });
    all_reduce(order, [&](int k) { return bypass_wire(plan(k), workspace(k)); });
  }
  void decode()
  {
    stage([](auto const&... given) { return tersum::decode(given...); });
    this->keep(this->read());
  }

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

  [[nodiscard]] chunk_step const& step(int rank, std::size_t chunk)
  {
    return reinterpret_cast<chunk_step const*>(workspace(rank).data())[chunk];
  }

 private:
  template <class Stage>
  void stage(Stage const& does)
  {
    for (int k = 0; k < world(); ++k) {
      auto const& r = this->at(k);
      REQUIRE(does(this->exec_, r.plan, r.gradient, r.state, r.workspace) == status{});
    }
  }
  template <class WireOf>
  void all_reduce(reduction_order order, WireOf wire_of)
  {
    std::vector<decltype(wire_of(0))> wires;
    for (int k = 0; k < world(); ++k) { wires.push_back(wire_of(k)); }
    using wire_type = typename decltype(wires)::value_type;
    REQUIRE(loopback_all_reduce(this->exec_, std::span<wire_type const>{wires}, order) == status{});
  }
};
template <class Codec>
staged_run(Codec const&, layout const&, int, std::uint64_t) -> staged_run<Codec>;

}  // namespace tersum::tests
