// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An exchange in parts, for callers that overlap its rounds with other work.
//!
//!     initialize(exec, plan, state, seed)                 once
//!     measure(exec, plan, gradient, state, workspace)     then reduce agreed_wire and bypass_wire
//!     encode(exec, plan, gradient, state, workspace)      then reduce payload_wire
//!     decode(exec, plan, gradient, state, workspace)
//!
//! A two-shot codec has one call more, between its two payload rounds:
//!
//!     encode(exec, plan, gradient, state, workspace)      then scatter scattered_wire
//!     recompress(exec, plan, gradient, state, workspace)  then gather gathered_wire
//!
//! Each call does those of the stages of `Codec::stages` that belong to it: see stages.hpp. Some codecs have nothing to
//! agree on, and no agreed_wire: casts of all or of random coordinates, two shots of fixed chunks,
//! alternating low-rank factors, and TopK, whose payload is a gathered_wire. Their `agrees<Codec>` is false.
//!
//! *Errors* of each call: the plan cannot be made (`plan::check`); an array has another size than the plan says, is null,
//! is misaligned (state and workspace: to 16 bytes) or overlaps another; the executor cannot run. Then nothing was written.
//! A launch that the CUDA runtime refuses is `execution_failed`: the exchange cannot go on.
//!
//! A wire of no elements needs no reduction. The bypass wire may be reduced at any time before `decode`, but if it is
//! reduced after `encode`, feedback does not see values in it that are not finite.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/detail/walk_exchange.hpp>
#include <tersum/exchange/gradient_memory.hpp>
#include <tersum/exchange/wires.hpp>
#include <tersum/execute/detail/arithmetic_probe.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/form/two_shot.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Fills a state for its first exchange: seed, table of chunks, zero residual.
//!
//! Enqueued on the executor; does not synchronize. Call it once, with the same seed on every rank, before the first
//! exchange of a plan, and again after the plan has changed.
//! @param exec   Does the work: `cpu_executor` or `cuda_executor`.
//! @param plan   The plan of the exchanges that the state is for.
//! @param state  plan.state_bytes() bytes of the executor's memory, aligned to 16.
//! @param seed   Makes the random numbers of all exchanges: any number, the same on every rank.
//!
//! *Errors*: those above, and a program that was compiled not to compute as IEEE 754 says. Where the kernels of a device
//! are at fault, which the call cannot know, it leaves a state that `check_state` refuses.
//!
//! @par Example
//! @snippet examples/transports/mpi_all_reduce.cpp initialize
template <executor Executor, class Codec>
status initialize(Executor const& exec,
                  plan<Codec> const& plan,
                  std::span<std::byte> state,
                  std::uint64_t seed)
{
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  if (status const s = detail::check_memory(state, plan.state_bytes(), detail::of_state); !s.ok()) {
    return s;
  }
  if (status const s = detail::check_arithmetic(); !s.ok()) { return s; }
  auto const args = make_args(plan, static_cast<float*>(nullptr), state, std::span<std::byte>{});
  if (status const s = exec.perform(stage::initialize{seed}, plan, args); !s.ok()) { return s; }
  if (host_executor<Executor>) { return {}; }
  return exec.each(detail::probe_arithmetic{args.header}, 1);
}

//! @name In parts
//! Each call is enqueued on the executor and does not synchronize.
//! @{

//! @brief Begins an exchange: computes what the ranks agree on. Afterwards `agreed_wire` and `bypass_wire` are ready.
//! *Errors*: those above.
//! @param exec       Does the work: `cpu_executor` or `cuda_executor`.
//! @param plan       Of this rank.
//! @param gradient   plan.coordinates() elements of the executor's memory, unchanged until `decode`, which writes the mean to it, the
//!                   same bits on every rank.
//! @param state      As `initialize` or the last exchange left it; for the other calls as the call before left it.
//! @param workspace  plan.workspace_bytes() bytes, aligned to 16, contents irrelevant; leave it alone until `decode`, apart from the
//!                   wires, which are exchanged between the calls.
template <executor Executor, class Codec, gradient_memory Gradient>
status measure(Executor const& exec,
               plan<Codec> const& plan,
               Gradient&& gradient,
               std::span<std::byte> state,
               std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::measure>(exec, plan, gradient, state, workspace);
}

//! @brief Makes the payload, once the agreed wire and the bypass wire have been reduced. Afterwards the codes are ready
//! in `payload_wire` (two shots: `scattered_wire`; TopK: `gathered_wire`).
//!
//! It chooses the chunks that travel, where the codec chooses, and derives the quantization step of each. Arguments and errors as
//! of `measure`.
template <executor Executor, class Codec, gradient_memory Gradient>
status encode(Executor const& exec,
              plan<Codec> const& plan,
              Gradient&& gradient,
              std::span<std::byte> state,
              std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::encode>(exec, plan, gradient, state, workspace);
}

//! @brief Decodes and adds the ranks' codes of this rank's part and encodes their mean, once the scattered wire has been
//! exchanged. Afterwards the part is ready in `gathered_wire`. Arguments and errors as of `measure`.
template <executor Executor, scattering Codec, gradient_memory Gradient>
status recompress(Executor const& exec,
                  plan<Codec> const& plan,
                  Gradient&& gradient,
                  std::span<std::byte> state,
                  std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::recompress>(exec, plan, gradient, state, workspace);
}

//! @brief Ends an exchange, once all wires have been reduced: the gradient becomes the mean, and the state the next step's. Arguments and
//! errors as of `measure`.
template <executor Executor, class Codec, gradient_memory Gradient>
status decode(Executor const& exec,
              plan<Codec> const& plan,
              Gradient&& gradient,
              std::span<std::byte> state,
              std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::decode>(exec, plan, gradient, state, workspace);
}
//! @}

}  // namespace tersum::inline v0
