// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Shards whose codes a transport adds, by every schedule, against a loopback. The sums of these codes are exact, and the norms are
//! added in the order of the ranks, so that all ways give the same bits.

#pragma once

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <interop/twin.hpp>
#include <span>
#include <vector>

namespace tersum::tests {

//! Lanes of 8 bits in which no sum saturates.
using unsaturated_shards =
  codec<fixed_chunks<256>,
        partial_hadamard<256>,
        summed_codes<rms_range<fixed_headroom>, stochastic_quantizer<8>, saturating_sum<8>>,
        shard>;

template <class Codec>
struct shard_memory {
  explicit shard_memory(tersum::plan<Codec> const& p)
    : plan(p), state_words(p.state_bytes() / 16 + 1), work_words(p.workspace_bytes() / 16 + 1),
      shard(p.shard_size())
  {
  }
  std::span<std::byte> state() { return std::as_writable_bytes(std::span{state_words}); }
  std::span<std::byte> workspace() { return std::as_writable_bytes(std::span{work_words}); }

  tersum::plan<Codec> plan;
  std::vector<word4> state_words, work_words;
  std::vector<float> gradient, shard;
};

//! @brief How many exchanges of one codec went wrong.
//! @param own  Whether the transport must have a reduce-scatter of its own for it.
template <class Transport, class Codec>
int check_summed_shards(Transport const& over, Codec const& codec, bool own)
{
  cpu_executor const exec;
  int const n = over.size(), me = over.rank();
  using round_type = summed_wire_of<typename Codec::payload_op, typename Codec::counts_type>;
  int failures     = scatters_sums<Transport, round_type> == own ? 0 : 1;
  for (bool const uneven : {false, true}) {
    layout const& shape = shapes[uneven ? 2 : 1];
    auto const cuts     = shard_cuts(shape.coordinates, n, uneven);
    std::vector<shard_memory<Codec>> ranks;
    std::vector<loopback_shard<Codec, float>> all;
    for (int rank = 0; rank < n; ++rank) {
      ranks.emplace_back(codec.plan(shape, {.size = n, .rank = rank}, cuts));
    }
    for (int rank = 0; rank < n; ++rank) {
      auto& r    = ranks[static_cast<std::size_t>(rank)];
      r.gradient = make_gradient(shape.coordinates, n, rank, 0);
      all.push_back({r.plan, r.gradient, r.shard, r.state(), r.workspace()});
      if (!initialize(exec, r.plan, r.state(), 7).ok()) { ++failures; }
    }
    std::span<loopback_shard<Codec, float> const> const spans{all};
    if (!loopback_reduce_scatter_mean(exec, spans).ok()) { ++failures; }
    auto const& want = ranks[static_cast<std::size_t>(me)].shard;
    shard_memory<Codec> mine(codec.plan(shape, {.size = n, .rank = me}, cuts));
    if (!agree_on(over, mine.plan, 7).ok()) { ++failures; }
    std::vector<word4> scratch(scratch_bytes(mine.plan) / 16 + 1);
    auto const bytes  = std::as_writable_bytes(std::span{scratch});
    auto const norms  = reduce_over<schedule::direct>(over, exec, bytes);
    auto const by_way = [&](char const* way, auto const& sums) {
      mine.gradient = make_gradient(shape.coordinates, n, me, 0);
      mine.shard.assign(mine.shard.size(), 0.0f);
      mine.work_words.assign(mine.work_words.size(), word4{~0u, ~0u, ~0u, ~0u});
      bool ok = initialize(exec, mine.plan, mine.state(), 7).ok();
      ok      = ok && reduce_scatter_mean(exec,
                                     mine.plan,
                                     mine.gradient,
                                     mine.shard,
                                     mine.state(),
                                     mine.workspace(),
                                     [&](auto const& round) {
                                       if constexpr (requires { round.sum; }) {
                                         return sums(round);
                                       } else {
                                         return norms(round);
                                       }
                                     })
                   .ok();
      if (ok && same(mine.shard, want)) { return; }
      ++failures;
      std::printf("rank %d of %d: summed shards, %s: differ from the loopback\n", me, n, way);
    };
    by_way("as the transport adds", reduce_over(over, exec, bytes));
    by_way("direct", norms);
    by_way("ring", reduce_over<schedule::ring>(over, exec, bytes));
    // Other boundaries are another plan.
    if (n > 1) {
      auto const others = shard_cuts(shape.coordinates, n, me == 0 ? !uneven : uneven);
      auto const other  = codec.plan(shape, {.size = n, .rank = me}, others);
      if (agree_on(over, other, 7).ok()) { ++failures; }
      if (!agree_on(over, mine.plan, 7).ok()) { ++failures; }
    }
  }
  return failures;
}

//! The same of two codecs: one in native integers, one in saturating lanes.
template <class Transport>
int check_summed_shards(Transport const& over, bool own)
{
  unsaturated_shards lanes{};
  lanes.coder.range.headroom.multiple = static_cast<float>(over.size());
  lanes.coder.range.clip              = 8.0f;
  return check_summed_shards(
           over,
           codec<fixed_chunks<1024>,
                 partial_hadamard<1024>,
                 summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
                 shard>{.coder = {.range = {.clip = 3.0f}}},
           own) +
         check_summed_shards(over, lanes, own);
}

}  // namespace tersum::tests
