// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A collective that takes rounds that reduce, and no other, is given to codecs that gather, exchange shards and gather values.
// expected first: tersum: the collective takes no tersum::gather_wire,
// expected: tersum: the collective takes no tersum::shards_wire_of,
// expected: tersum: the collective takes no tersum::gather_wire_of,
// expected: tersum: the collective takes no tersum::summed_wire_of,
// expected: tersum: the collective takes no tersum::scatter_wire,

#include <tersum/tersum.hpp>

#include <cstddef>
#include <span>

using namespace tersum;

struct sum {
  template <class Op>
  status operator()(wire<Op> const&) const;
} mine;

status exchange(std::span<float> x, std::span<std::byte> s, std::span<std::byte> w)
{
  cpu_executor const exec;
  (void)all_reduce_mean(exec, presets::gathered_2.plan({x.size()}, {}), x, s, w, mine);
  (void)reduce_scatter_mean(exec, presets::sharded_4.plan({x.size()}, {}), x, x, s, w, mine);
  (void)all_gather_values(exec, presets::values_4.plan({x.size()}, {}), x, x, s, w, mine);
  (void)reduce_scatter_mean(
    exec, presets::summed_shards_sat4.plan({x.size()}, {}), x, x, s, w, mine);
  return all_reduce_mean(exec, presets::two_shot_4.plan({x.size()}, {}), x, s, w, mine);
}
