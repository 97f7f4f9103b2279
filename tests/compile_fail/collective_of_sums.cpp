// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A collective that takes rounds that reduce, and no other, is given to codecs that gather, exchange shards and gather values.
// expected first: tersum: the collective does not take this kind of round
// expected: gather_wire<unsigned int>
// expected: shards_wire_of<unsigned int
// expected: gather_wire_of<unsigned int
// expected: summed_wire_of<
// expected: scatter_wire<unsigned int>

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
