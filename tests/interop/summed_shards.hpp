// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Shards whose codes a transport adds, by every schedule, against a loopback. The sums of these codes are exact, and the norms are
//! added in the order of the ranks, so that all ways give the same bits.

#pragma once

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <interop/expected_parts.hpp>
#include <span>
#include <vector>

namespace tersum::tests {

//! Lanes of 8 bits in which no sum saturates.
using unsaturated_shards =
  codec<fixed_chunks<256>,
        partial_hadamard<256>,
        summed_codes<rms_range<fixed_headroom>, stochastic_quantizer<8>, saturating_sum<8>>,
        shard>;

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
    auto const all      = expected_parts<float>(codec, shape, uneven, n);
    if (all.empty()) { return failures + 1; }
    auto const& want = all[0][static_cast<std::size_t>(me)];
    rank_memory<Codec> mine(codec.plan(shape, {.size = n, .rank = me}, cuts));
    std::vector<float> shard(mine.plan.shard_size());
    if (!agree_on(over, mine.plan, 7).ok()) { ++failures; }
    std::vector<word4> scratch(scratch_bytes(mine.plan) / 16 + 1);
    auto const bytes  = std::as_writable_bytes(std::span{scratch});
    auto const norms  = reduce_over<schedule::direct>(over, exec, bytes);
    auto const by_way = [&](char const* way, auto const& sums) {
      mine.gradient = make_gradient(shape.coordinates, n, me, 0);
      shard.assign(shard.size(), 0.0f);
      mine.work_words.assign(mine.work_words.size(), word4{~0u, ~0u, ~0u, ~0u});
      bool ok = mine.begin().ok();
      ok      = ok && reduce_scatter_mean(exec,
                                     mine.plan,
                                     mine.gradient,
                                     shard,
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
      if (ok && same(shard, want)) { return; }
      ++failures;
      std::printf("rank %d of %d: summed shards, %s: differ from the loopback\n", me, n, way);
    };
    by_way("as the transport adds", reduce_over(over, exec, bytes));
    by_way("direct", norms);
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
  return check_summed_shards(over, shards_in_integers, own) + check_summed_shards(over, lanes, own);
}

}  // namespace tersum::tests
