// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The whole exchange in one call.

#pragma once

#include <tersum/collective/exchange.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief Replaces the gradient by the mean of all ranks' gradients, compressed on the way.
//!
//! Every rank calls it with the same plan but for its rank. Everything is enqueued on the executor; the library neither
//! allocates nor synchronizes, so that with `cuda_executor` and a stream-ordered collective the call can be captured in
//! a CUDA graph. After the exchange all ranks hold the same bits.
//!
//! A budget that does not even pay for the norms sends nothing, and the mean is zeros, which is no error: see
//! `plan::travels`.
//!
//! All memory is the executor's: the host's, or the device's. Gradient, state and workspace do not overlap.
//! @param gradient   plan.coordinates() values of float, half or bfloat16; overwritten.
//! @param state      From `initialize`; plan.state_bytes() bytes, aligned to 16. Carries seed, step, head-room and residual.
//! @param workspace  plan.workspace_bytes() bytes, aligned to 16, contents irrelevant.
//! @param reduce     Called once a round with a `wire`: must make `wire.data[0 .. wire.count)` the reduction by `wire.op`
//!                   (of allocated chunks it takes the element's position too) over the ranks, in place, the same bits
//!                   on every rank, ordered after what the executor has enqueued and before what it enqueues next.
//!                   Under `two_shot_codec` also with a
//!                   `scatter_wire` and a `gather_wire`, under `top_coordinates_codec` with a `gather_wire`, whose parts
//!                   it must exchange or gather. If it can be called with a `scatter_wire`, a `gather_wire` and a
//!                   `part_recompression`, it is, instead of with one after the other: so parts move in pieces. Returns nothing, a `status`, or an integer or enumerator of a transport
//!                   for which 0 is success.
//! @return  The first error. One that a single rank finds in its arguments, a null pointer for instance, returns before its
//!          first round, and the other ranks wait for it as long as their transport does. If `reduce` failed, the gradient is unchanged, but the residual of a codec with feedback
//!          has moved on: restore the state from a copy or `initialize` it.
template <executor Executor, class Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce);

}  // namespace tersum::inline v0

#include <tersum/collective/all_reduce_mean.ipp>
