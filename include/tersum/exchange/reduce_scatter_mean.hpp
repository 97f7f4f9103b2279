// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The whole exchange in one call, after which each rank has the mean of its shard.

#pragma once

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/form/shard.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief Computes this rank's shard of the mean of all ranks' gradients, compressed on the way: a reduce-scatter.
//!
//! Every rank calls it, with plans that differ in the rank only. Each coordinate is encoded once, decoded by the rank whose
//! shard it lies in, and added in float, in the order of the ranks; `summed_codes` are added in the wire, and decoded by that
//! rank. Everything is enqueued on the executor; the library neither allocates nor synchronizes, so with `cuda_executor` and a
//! stream-ordered collective the call can be captured in a CUDA graph.
//!
//! `state_header::last_was_non_finite()` says whether a gradient was not finite in *this rank's* shard, or in a tensor that
//! bypasses; other shards only their ranks know. Where a loss scaler skips steps, let the ranks agree on it. Chunks that are
//! not finite on this rank leave its residual as it was.
//!
//! All memory is the executor's: the host's, or the device's. State and workspace overlap nothing; the shard may lie
//! within the gradient, which then is partly overwritten at the end.
//! @param exec       Does the work: `cpu_executor` or `cuda_executor`.
//! @param plan       Of this rank, from the plan() of a codec with `shard`, which is given the shards' boundaries.
//! @param gradient   plan.coordinates() values of float, half or bfloat16; not changed.
//! @param shard      plan.shard_size() values of float, half or bfloat16, whatever the gradient's type; overwritten.
//! @param state      From `initialize`; plan.state_bytes() bytes, aligned to 16. Carries seed, step and residual.
//! @param workspace  plan.workspace_bytes() bytes, aligned to 16, contents irrelevant. How many depends on the rank.
//! @param reduce     Your collective, or what `reduce_over` makes of a transport. It is called with a `wire` of the
//!                   coordinates that bypass the codec, if there are any, to sum it over the ranks; and with a
//!                   `shards_wire_of`, whose parts it must exchange. With `summed_codes` it is called with a `wire` of
//!                   norms, and with a `summed_wire_of`, which it must reduce and scatter. When it must run and what it
//!                   returns `all_reduce_mean` says.
//! @return  The first error, as of `all_reduce_mean`. If `reduce` fails, the shard is unchanged, but the residual of a codec
//!          with feedback has moved on.
//!
//! @par Example
//! @snippet examples/08_shards.cpp reduce_scatter
template <executor Executor,
          ending_in_shards Codec,
          gradient_values Gradient,
          gradient_memory Shard,
          class Reduce>
status reduce_scatter_mean(Executor const& exec,
                           plan<Codec> const& plan,
                           Gradient&& gradient,
                           Shard&& shard,
                           std::span<std::byte> state,
                           std::span<std::byte> workspace,
                           Reduce&& reduce)
{
  auto const values = detail::span_of(gradient);
  auto const means  = detail::span_of(shard);
  status checked    = detail::check_arguments(plan, values, state, workspace);
  if (checked.ok()) {
    checked = detail::check_array(plan, means, plan.shard_size(), state, workspace);
  }
  return detail::walk_exchange(checked, exec, plan, values, means, state, workspace, reduce);
}

//! @brief Ends a sharded exchange that is made in parts: after `measure`, the sum of `bypass_wire`, `encode` and the
//! exchange of `shards_wire` (or the reduce-scatter of `summed_wire`), writes the mean to the shard. Parameters and errors
//! as above. Enqueued on the executor; does not synchronize.
template <executor Executor, ending_in_shards Codec, gradient_memory Shard>
status decode_shard(Executor const& exec,
                    plan<Codec> const& plan,
                    Shard&& shard,
                    std::span<std::byte> state,
                    std::span<std::byte> workspace)
{
  auto const means     = detail::span_of(shard);
  status const checked = detail::check_array(plan, means, plan.shard_size(), state, workspace);
  return detail::walk_exchange<exchange_part::decode>(
    checked, exec, plan, means, means, state, workspace, detail::rounds_of_caller);
}

}  // namespace tersum::inline v0
