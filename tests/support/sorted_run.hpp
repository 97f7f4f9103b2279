// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of a `sorted_codec` on any executor, with all that lies in their memory.

#pragma once

#include "exchange_fixture.hpp"
#include "host_buffer.hpp"

#include <tersum/cast_codec.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/sorted_codec.hpp>

#include <cmath>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief Matrices of every kind that kernels treat differently: rows that fit in shared memory and that do not, fewer columns
//! than a warp has threads, more lines than a group; beside them what is not sorted.
inline std::vector<tensor> const uneven_shapes{
  {.rows = 67, .columns = 131, .offset = 0},
  {.rows = 2, .columns = 8195, .offset = 8777},   // a row is too long for a block's memory
  {.rows = 500, .offset = 25167},                 // bypasses
  {.rows = 2053, .columns = 2, .offset = 25667},  // two groups of rows
  {.rows = 0, .columns = 7, .offset = 29773},     // empty
  {.rows = 130, .columns = 64, .offset = 29773},  // one strip
  {.rows = 1, .columns = 9, .offset = 38093}};
inline layout const uneven_matrices{.coordinates = 38102, .tensors = uneven_shapes};

//! @brief Values of unlike sizes in every row and column, of which some are zeros.
template <class Element>
[[nodiscard]] std::vector<Element> uneven_values(layout const& bucket, int rank, int step)
{
  std::vector<Element> out(bucket.coordinates);
  std::uint32_t seed =
    12345u + 977u * static_cast<unsigned>(rank) + 31u * static_cast<unsigned>(step);
  for (tensor const& t : bucket.tensors) {
    for (std::uint64_t i = 0; i < t.size(); ++i) {
      std::uint64_t const row = i / t.columns, column = i % t.columns;
      seed                = seed * 1664525u + 1013904223u;
      auto const exponent = static_cast<int>(row * 7 % 11 + column * 5 % 13) - 12;
      float const value   = std::ldexp(static_cast<float>(seed >> 8) - 8388608.0f, exponent - 22);
      bool const is_zero  = row % 17 == 3 || column % 19 == 5 || seed % 8 == 0;
      out[t.offset + i]   = from_float<Element>(is_zero ? 0.0f : value);
    }
  }
  return out;
}

//! @brief The means and states of two ranks after each of two exchanges, with the keys, the order and the sorted gradient.
//! @param most_key_bits  With 8 all matrices are sorted, with 2 not those of two rows or columns.
template <class Buffer, class Element, class Executor, class Codec>
[[nodiscard]] exchange_trace record_sorted(Executor const& exec,
                                           Codec codec,
                                           std::byte fill,
                                           float most_key_bits = 8)
{
  codec.most_key_bits = most_key_bits;
  std::deque<Buffer> memory;
  auto const bytes = [&](std::size_t size) -> Buffer& {
    return memory.emplace_back(size, std::size_t{0}, fill);
  };
  std::vector<loopback_rank<Codec, Element>> ranks;
  std::vector<Buffer*> gradients, states, workspaces;
  for (int rank = 0; rank < 2; ++rank) {
    auto const plan = codec.plan(uneven_matrices, {.size = 2, .rank = rank});
    require_ok(plan.check());
    gradients.push_back(&bytes(plan.coordinates() * sizeof(Element)));
    states.push_back(&bytes(plan.state_bytes()));
    workspaces.push_back(&bytes(plan.workspace_bytes()));
    auto const values = gradients.back()->contents();
    ranks.push_back({plan,
                     {reinterpret_cast<Element*>(values.data()), plan.coordinates()},
                     states.back()->contents(),
                     workspaces.back()->contents()});
    require_ok(initialize(exec, plan, states.back()->contents(), 77));
  }
  exchange_trace trace;
  for (int step = 0; step < 2; ++step) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      auto const in = uneven_values<Element>(uneven_matrices, static_cast<int>(rank), step);
      gradients[rank]->write(std::as_bytes(std::span{in}));
    }
    std::span<loopback_rank<Codec, Element> const> const all{ranks};
    require_ok(loopback_all_reduce_mean(exec, all, reduction_order::direct));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      auto const number = static_cast<int>(rank);
      auto const& plan  = ranks[rank].plan;
      auto const part   = [&](char const* name, detail::section of, std::size_t size) {
        std::size_t const at = plan.workspace_sections().offset(of);
        trace.push_back({name, step, number, workspaces[rank]->read(at, size)});
      };
      part("sorted", detail::section::sorted, plan.coordinates() * sizeof(float));
      part("order", detail::section::lines, plan.lines_bytes() * sizeof(std::uint32_t));
      part("keys", detail::section::line_keys, plan.lines_bytes());
      trace.push_back(
        {"mean", step, number, gradients[rank]->read(0, gradients[rank]->contents().size())});
      trace.push_back(
        {"state", step, number, states[rank]->read(0, states[rank]->contents().size())});
    }
  }
  return trace;
}

}  // namespace tersum::tests
