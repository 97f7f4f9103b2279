// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The exchange of a `two_level_codec`, with a collective within hosts and one between them.

#pragma once

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/two_level_codec.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief What `all_reduce_mean` asks for under a `two_level_codec`: a collective among the ranks of a host, and one among those
//! of the same number on all hosts.
//!
//! Both are called as `all_reduce_mean` says: `within` with `shards_wire_of`, `gather_wire_of` and, if anything bypasses the
//! codec, with a `wire`; `between` with the rounds of the codec between hosts.
template <class Within, class Between>
struct two_levels {
  Within within;
  Between between;
};

template <class Within, class Between>
two_levels(Within, Between) -> two_levels<Within, Between>;

//! @brief Fills the three states of a `two_level_codec`: as `initialize`.
template <executor Executor, on_two_levels Codec>
status initialize(Executor const& exec,
                  plan<Codec> const& plan,
                  std::span<std::byte> state,
                  std::uint64_t seed);

//! @brief Replaces the gradient by the mean of all ranks of all hosts: as `all_reduce_mean`, in three exchanges. The collective is a
//! `two_levels`, or what has its two members.
//!
//! If a collective fails, the gradient is unchanged, but residuals of codecs with feedback may have moved on.
template <executor Executor, on_two_levels Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce);

//! @brief Does not compile: shards on two levels are two exchanges. The first is among the ranks of a host; the second, of the
//! shard that it leaves, among those of the same number on all hosts. So the shards of a host's ranks are cut by the hosts.
template <executor Executor, on_two_levels Codec, class Gradient, class Shard, class Reduce>
status reduce_scatter_mean(Executor const&,
                           plan<Codec> const&,
                           Gradient&&,
                           Shard&&,
                           std::span<std::byte>,
                           std::span<std::byte>,
                           Reduce&&)
{
  static_assert(!on_two_levels<Codec>,
                "tersum: a two_level_codec leaves the whole mean on every rank: for shards call "
                "reduce_scatter_mean twice, within hosts and, of that shard, between them");
  return {};
}

}  // namespace tersum::inline v0

#include <tersum/exchange/detail/two_levels.ipp>
