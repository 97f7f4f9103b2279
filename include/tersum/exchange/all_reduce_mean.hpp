// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The whole exchange in one call.

#pragma once

#include <tersum/exchange/exchange.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief Replaces the gradient by the mean of all ranks' gradients, compressed on the way.
//!
//! Every rank calls it, with plans that differ in the rank only. After the exchange all ranks hold the same bits.
//! Everything is enqueued on the executor; the library neither allocates nor synchronizes, so with `cuda_executor` and
//! a stream-ordered collective the call can be captured in a CUDA graph.
//!
//! If a codec chooses chunks and its budget does not even pay for the norms, nothing is sent and the mean is zeros.
//! That is no error: ask `plan::travels` first.
//!
//! All memory is the executor's: the host's, or the device's. Gradient, state and workspace do not overlap.
//! @param exec       Does the work: `cpu_executor` or `cuda_executor`.
//! @param plan       Of this rank, from `Codec::plan`.
//! @param gradient   plan.coordinates() values of float, half or bfloat16; overwritten.
//! @param state      From `initialize`; plan.state_bytes() bytes, aligned to 16. Has seed, step, head-room, residual.
//! @param workspace  plan.workspace_bytes() bytes, aligned to 16, contents irrelevant.
//! @param reduce     Your collective, or what `reduce_over` makes of a transport. It is called once for each round, with a
//!                   `wire`, and must replace wire.data[0 .. wire.count) by the reduction over the ranks by `wire.op`, with
//!                   the same bits on every rank. (Under `codec` with `allocated_chunks` the operation also takes the
//!                   element's position.) It must run after what the executor has enqueued, and before what the executor
//!                   enqueues next. It returns nothing, a `status`, or a transport's integer or enumerator of which 0 means
//!                   success. Under `two_shot` it is also called with a `scatter_wire`, whose parts it must exchange, and
//!                   with a `gather_wire`, whose parts it must gather. It may do stages itself, between the
//!                   executor's: those of which its member `does` says so.
//! @return  The first error. If a single rank finds a fault in its arguments, such as a null pointer, it returns before
//!          its first round, and the other ranks wait for it as long as their transport does. If `reduce` fails, the
//!          gradient is unchanged, but a residual has moved on: restore the state from a copy or `initialize` it.
//!
//! @par Example: over MPI
//! @snippet examples/transports/mpi_all_reduce.cpp reduce_over
//! @par Example: a collective of one's own, among threads
//! @snippet examples/01_exchange_on_the_cpu.cpp all_reduce
//! @par Example: one that takes every kind of round; docs/transports.md has the whole contract
//! @snippet examples/07_your_own_collective.cpp reduce
template <executor Executor, class Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce)
{
  static_assert(!ending_in_shards<Codec>,
                "tersum: all_reduce_mean takes no codec with shard: call "
                "reduce_scatter_mean");
  static_assert(!publishing<Codec>,
                "tersum: all_reduce_mean takes no codec with publish: call all_gather_values");
  auto const values    = detail::span_of(gradient);
  status const checked = detail::check_arguments(plan, values, state, workspace);
  return detail::walk_exchange(checked, exec, plan, values, values, state, workspace, reduce);
}

}  // namespace tersum::inline v0
