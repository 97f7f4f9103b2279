// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every rank's shard reaches all ranks in codes, which all ranks decode to the same bits.

#pragma once

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/form/publish.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! All arguments of an exchange of values, and whether the shard lies where it may.
template <class Codec, class ShardElement, class Element>
[[nodiscard]] status check_published(plan<Codec> const& plan,
                                     std::span<ShardElement> shard,
                                     std::span<Element> values,
                                     std::span<std::byte const> state,
                                     std::span<std::byte const> workspace) noexcept
{
  if (status const s = check_arguments(plan, values, state, workspace); !s.ok()) { return s; }
  status const s = check_array(plan, shard, plan.shard_size(), state, workspace);
  if (!s.ok()) { return s; }
  void const* const place = values.data() + plan.shard_begin(plan.ranks().rank);
  bool const in_place     = std::is_same_v<ShardElement, Element> && shard.data() == place;
  if (are_apart(shard.data(), shard.size_bytes(), values.data(), values.size_bytes()) ||
      (in_place && !codes_differences<Codec>)) {
    return {};
  }
  return {error_code::invalid_argument,
          codes_differences<Codec>
            ? "shard overlaps values: a difference to itself says nothing"
            : "shard overlaps values: within them it must lie from plan.shard_begin(rank) on"};
}

}  // namespace detail

//! @brief Gives all ranks the values of all ranks' shards, compressed on the way: an all-gather.
//!
//! Every rank calls it, with plans that differ in the rank only. Each rank encodes its own shard. All ranks decode all shards, the owner
//! its own too, so afterwards all of them hold the same bits. Everything is enqueued on the executor; the library neither allocates nor
//! synchronizes, so with `cuda_executor` and a stream-ordered collective the call can be captured in a CUDA graph.
//!
//! What `values` holds before the call matters only under `difference_feedback`: there it is what all ranks hold already, the
//! same bits on every rank and finite. The codes are of the difference of the shard to it, and what they decode to is added
//! to it. The owner keeps its exact shard, so that what was lost is part of the next difference. For the first call write
//! zeros, or gather the values whole. The coordinates that bypass the codec are replaced by those of their shards.
//!
//! If a value is not finite, `state_header::last_was_non_finite()` says so on every rank. Its chunk becomes NaN on every rank;
//! under `difference_feedback` it stays what it was.
//!
//! All memory is the executor's: the host's, or the device's. State and workspace overlap nothing. The shard may lie within the
//! values, from values.data() + plan.shard_begin(rank) on, but not under `difference_feedback`.
//! @param exec       Does the work: `cpu_executor` or `cuda_executor`.
//! @param plan       Of this rank, from the plan() of a codec with `publish`, which is given the shards' boundaries.
//! @param shard      plan.shard_size() values of float, half or bfloat16; not changed. Of an empty shard it may be empty.
//! @param values     plan.coordinates() values of float, half or bfloat16, whatever the shard's type; overwritten.
//! @param state      From `initialize`; plan.state_bytes() bytes, aligned to 16. Carries seed, step and residual.
//! @param workspace  plan.workspace_bytes() bytes, aligned to 16, contents irrelevant.
//! @param gather     Your collective, or what `reduce_over` makes of a transport. It is called with one or two
//!                   `gather_wire_of`, the first for what bypasses the codec if anything does, whose parts it must gather.
//!                   When it must run and what it returns `all_reduce_mean` says.
//! @return  The first error, as of `all_reduce_mean`. If `gather` fails, the values are unchanged, but the residual of a codec
//!          with `error_feedback` has moved on.
//!
//! @par Example
//! @snippet examples/08_shards.cpp all_gather
template <executor Executor,
          publishing Codec,
          gradient_values Shard,
          gradient_memory Values,
          class Gather>
status all_gather_values(Executor const& exec,
                         plan<Codec> const& plan,
                         Shard&& shard,
                         Values&& values,
                         std::span<std::byte> state,
                         std::span<std::byte> workspace,
                         Gather&& gather)
{
  auto const own       = detail::span_of(shard);
  auto const all       = detail::span_of(values);
  status const checked = detail::check_published(plan, own, all, state, workspace);
  return detail::walk_exchange(checked, exec, plan, own, all, state, workspace, gather);
}

//! @name In parts
//! For callers that overlap the rounds with other work: `encode_shard`, then the gathers of `published_bypass_wire` and
//! `published_wire`, then `decode_values`. Parameters and errors as above; the values must not change in between. Both
//! enqueue on the executor and do not synchronize.
//! @{

//! Encodes this rank's shard, after which both wires hold its parts. *Errors*: those of arguments; then nothing was written.
template <executor Executor, publishing Codec, gradient_values Shard, gradient_memory Values>
status encode_shard(Executor const& exec,
                    plan<Codec> const& plan,
                    Shard&& shard,
                    Values&& values,
                    std::span<std::byte> state,
                    std::span<std::byte> workspace)
{
  auto const own       = detail::span_of(shard);
  auto const all       = detail::span_of(values);
  status const checked = detail::check_published(plan, own, all, state, workspace);
  return detail::walk_exchange<exchange_part::measure, exchange_part::encode>(
    checked, exec, plan, own, all, state, workspace, detail::rounds_of_caller);
}

//! Decodes the shards of all ranks, which both wires hold, into the values. *Errors*: those of arguments, before it writes.
template <executor Executor, publishing Codec, gradient_memory Values>
status decode_values(Executor const& exec,
                     plan<Codec> const& plan,
                     Values&& values,
                     std::span<std::byte> state,
                     std::span<std::byte> workspace)
{
  auto const all       = detail::span_of(values);
  status const checked = detail::check_arguments(plan, all, state, workspace);
  return detail::walk_exchange<exchange_part::decode>(
    checked, exec, plan, all, all, state, workspace, detail::rounds_of_caller);
}
//! @}

}  // namespace tersum::inline v0
