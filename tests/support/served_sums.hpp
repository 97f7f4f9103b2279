// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Indices and sums of table values, of a workspace of any levels.

#pragma once

#include "exchange_fixture.hpp"

#include <tersum/exchange/exchange.hpp>
#include <tersum/plan.hpp>
#include <tersum_baselines/served_sum.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief What a rank has encoded with a codec of table values and a server sends it: some chunks have no step, some lost
//! contributions, or all. Sums are any that a lane holds.
template <class Codec>
class served_sums {
 public:
  explicit served_sums(Codec const& codec)
    : plan_{codec.plan({.coordinates = 9 * 1024 + 1}, {.size = 3, .rank = 1})}
  {
    using table = typename Codec::quantizer_type::table;
    std::mt19937 random(7);
    for (std::size_t chunk = 0; chunk < plan_.chunks(); ++chunk) {
      arrived_.push_back(static_cast<std::uint16_t>(chunk % 4));
      chunk_step const step{chunk % 3 == 0 ? 0.0F : 3.0F, .7F, 0, 0};
      std::memcpy(workspace_.data() + chunk * sizeof(step), &step, sizeof(step));
    }
    // Of the lanes the lowest bytes come first.
    constexpr std::size_t lane_bytes = Codec::lanes::bits / 8;
    for (std::size_t i = 0; i < plan_.payload_bytes(); i += lane_bytes) {
      int const code = table::value[random() % table::count] - table::granularity / 2;
      std::memcpy(workspace_.data() + plan_.offset("payload") + i, &code, lane_bytes);
      for (std::size_t k = 0; k < lane_bytes; ++k) {
        sums_[i + k] = static_cast<std::byte>(random() % 256);
      }
    }
  }

  //! @brief The indices of the payload, and the workspace after the sums have taken its place, and the means.
  template <class Buffer, class Executor>
  [[nodiscard]] std::array<byte_string, 3> run(Executor const& exec) const
  {
    auto const copy = [](auto const& from) {
      auto const bytes = std::as_bytes(std::span{from});
      auto buffer      = std::make_unique<Buffer>(bytes.size(), 0, std::byte{0});
      buffer->write(bytes);
      return buffer;
    };
    auto const workspace = copy(workspace_), sums = copy(sums_), arrived = copy(arrived_);
    Buffer const indices{index_bytes(plan_), 0, std::byte{0xa5}};
    std::span const counts{reinterpret_cast<std::uint16_t const*>(arrived->contents().data()),
                           arrived_.size()};
    REQUIRE(pack_indices(exec, plan_, workspace->contents(), indices.contents()) == status{});
    REQUIRE(unpack_sums(exec, plan_, workspace->contents(), sums->contents(), counts) == status{});
    Buffer const state{plan_.state_bytes(), 0, std::byte{0}};
    Buffer const means{plan_.coordinates() * sizeof(float), 0, std::byte{0}};
    std::span const values{reinterpret_cast<float*>(means.contents().data()), plan_.coordinates()};
    REQUIRE(initialize(exec, plan_, state.contents(), 5) == status{});
    REQUIRE(decode(exec, plan_, values, state.contents(), workspace->contents()) == status{});
    return {indices.read(0, index_bytes(plan_)),
            workspace->read(0, plan_.workspace_bytes()),
            means.read(0, means.contents().size())};
  }

 private:
  plan<Codec> plan_;
  byte_string workspace_ = byte_string(plan_.workspace_bytes());
  byte_string sums_      = byte_string(plan_.payload_bytes());
  std::vector<std::uint16_t> arrived_;
};

}  // namespace tersum::tests
