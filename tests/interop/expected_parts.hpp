// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What all ranks of a loopback get from exchanges of shards and of values.

#pragma once

#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <interop/twin.hpp>
#include <span>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! Shards of 4 bits that are added in integers of 8.
inline constexpr codec<
  fixed_chunks<1024>,
  partial_hadamard<1024>,
  summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
  shard>
  shards_in_integers{.coder = {.range = {.clip = 3.0f}}};

template <class Codec>
struct rank_memory {
  explicit rank_memory(tersum::plan<Codec> const& p)
    : plan(p), state_words(p.state_bytes() / 16 + 1), work_words(p.workspace_bytes() / 16 + 1)
  {
  }
  [[nodiscard]] status begin() { return initialize(cpu_executor{}, plan, state(), 7); }
  std::span<std::byte> state() { return std::as_writable_bytes(std::span{state_words}); }
  std::span<std::byte> workspace() { return std::as_writable_bytes(std::span{work_words}); }
  [[nodiscard]] state_header const& header()
  {
    return *reinterpret_cast<state_header const*>(state_words.data());
  }

  tersum::plan<Codec> plan;
  std::vector<word4> state_words, work_words;
  std::vector<float> gradient;
};

//! What a rank gives in a step: its gradient, or its shard of the values that are the gradient of rank 0.
template <class Given, class Plan>
[[nodiscard]] std::vector<Given> given_to(Plan const& plan, int step)
{
  bool const is_part = publishing<typename Plan::codec_type>;
  int const rank     = plan.ranks().rank;
  auto const all = make_gradient(plan.coordinates(), plan.ranks().size, is_part ? 0 : rank, step);
  std::span<float const> values{all};
  if (is_part) { values = values.subspan(plan.shard_begin(rank), plan.shard_size()); }
  std::vector<Given> out;
  for (float const value : values) { out.push_back(from_float<Given>(value)); }
  return out;
}

//! How many coordinates a rank gets.
template <class Plan>
[[nodiscard]] std::size_t got_size(Plan const& plan)
{
  return publishing<typename Plan::codec_type> ? plan.coordinates() : plan.shard_size();
}

//! @brief What every rank gets in each step; nothing if the loopback fails, or if ranks get unlike values.
template <class Given, class Got = Given, class Codec>
[[nodiscard]] std::vector<std::vector<std::vector<Got>>> expected_parts(Codec const& codec,
                                                                        layout const& shape,
                                                                        bool uneven,
                                                                        int world)
{
  auto const cuts = shard_cuts(shape.coordinates, world, uneven);
  std::vector<rank_memory<Codec>> ranks;
  std::vector<std::vector<Got>> got;
  std::vector<std::vector<std::vector<Got>>> out;
  for (int k = 0; k < world; ++k) {
    ranks.emplace_back(codec.plan(shape, {.size = world, .rank = k}, cuts));
    got.emplace_back(got_size(ranks.back().plan));
    if (!ranks.back().begin().ok()) { return {}; }
  }
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<Given>> given;
    std::vector<loopback_shard<Codec, Given, Got>> all;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      auto& r = ranks[k];
      given.push_back(given_to<Given>(r.plan, step));
      all.push_back({r.plan, given.back(), got[k], r.state(), r.workspace()});
    }
    if (!loopback_exchange(cpu_executor{}, all, reduction_order::direct).ok()) { return {}; }
    for (auto const& values : got) {
      if (publishing<Codec> && !same(values, got[0])) { return {}; }
    }
    out.push_back(got);
  }
  return out;
}

}  // namespace tersum::tests
