// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Generic collectives that read what only rounds that reduce have, and are given to codecs that gather, exchange shards and
//! gather values; one of them reads no more than the array.
// expected first: lacks
// expected: gather_wire<unsigned int>
// expected: shards_wire_of<unsigned int
// expected: gather_wire_of<unsigned int
// expected: tersum: this kind of round lacks the member: docs/transports.md says what it must do

#include <tersum/tersum.hpp>

#include <cstddef>
#include <span>

using namespace tersum;

template <class Op>
void my_all_reduce(typename Op::element*, std::size_t, Op);

void my_all_reduce(void*, std::size_t);

constexpr auto mine   = [](auto round) { my_all_reduce(round.data, round.count, round.op); };
constexpr auto floats = [](auto round) { my_all_reduce(round.data, round.count); };

status exchange(std::span<float> x, std::span<std::byte> s, std::span<std::byte> w)
{
  cpu_executor const exec;
  (void)all_reduce_mean(exec, presets::gathered_2.plan({x.size()}, {}), x, s, w, floats);
  (void)reduce_scatter_mean(exec, presets::sharded_4.plan({x.size()}, {}), x, x, s, w, mine);
  return all_gather_values(exec, presets::values_4.plan({x.size()}, {}), x, x, s, w, mine);
}
