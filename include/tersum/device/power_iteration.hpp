// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Matrices M as factors P Q^T: one step of the power iteration on all matrices of a bucket.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! A codec whose exchange of one rank is one step of the power iteration: paired factors without feedback.
template <class Codec>
concept iterating = is_low_rank<Codec> && agrees<Codec> && !feeds_back<Codec>;

//! @brief P = M Q, the columns of P made orthonormal, and Q = M^T P, from which the next call starts. Then P Q^T approximates
//! M, better with every call.
//!
//! The stages are those of the codec, so that the factors have the bits of its exchanges, on every executor. Ranks that
//! compress the sum of their matrices call `measure`, reduce `agreed_wire`, call `encode` and reduce `payload_wire` instead: that
//! is PowerSGD. Enqueued on the executor, in the same number of launches for any number of matrices; does not synchronize.
//! @param exec       Does the work: `cpu_executor` or `cuda_executor`.
//! @param plan       Of one rank. Its layout's tensors are the matrices; those that bypass have no factors.
//! @param matrices   *Read*: plan.coordinates() values of float, half or bfloat16, the matrices row after row.
//! @param state      *Read and written*: from `initialize`, which fills Q with random numbers, or from the last call. After a
//!                   matrix with a value that is not finite `header_of` says so, and Q is as it was before the call.
//! @param workspace  *Written*: plan.workspace_bytes() bytes, aligned to 16. Receives `left_factors` and `right_factors`.
//!
//! *Errors*: those of exchange.hpp, and a plan of several ranks.
//!
//! @par Example
//! @snippet tests/device/low_rank_cases.hpp power_iteration
template <executor Executor, iterating Codec, gradient_memory Matrices>
[[nodiscard]] status power_iteration(Executor const& exec,
                                     plan<Codec> const& plan,
                                     Matrices&& matrices,
                                     std::span<std::byte> state,
                                     std::span<std::byte> workspace)
{
  using step         = stage_list<stage::open,
                          stage::measure,
                          stage::orthonormalize,
                          stage::encode,
                          stage::receive,
                          stage::finish>;
  auto const values  = detail::span_of(matrices);
  auto const checked = detail::check_arguments(plan, values, state, workspace);
  bool const of_one  = plan.ranks().size == 1;
  if (!checked.ok()) { return checked; }
  if (!of_one) { return {error_code::invalid_argument, "plan is for several ranks"}; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  auto const args = detail::make_args(plan, values.data(), state, workspace);
  return walk(step{}, [&](auto stage) { return exec.perform(stage, plan, args); });
}

//! @name Factors that an exchange or a call of `power_iteration` leaves in its workspace
//! Matrix after matrix, column after column, in the executor's memory. `plan.for_each_matrix(visit)` calls
//! visit(matrix_record const&) for each matrix: P begins at slot[0], Q at slot[1].
//! @{
template <iterating Codec>
[[nodiscard]] std::span<float> left_factors(plan<Codec> const& plan,
                                            std::span<std::byte> workspace) noexcept
{
  return {reinterpret_cast<float*>(workspace.data() + plan.offset("even_factor")),
          plan.factor_elements(0)};
}
template <iterating Codec>
[[nodiscard]] std::span<float> right_factors(plan<Codec> const& plan,
                                             std::span<std::byte> workspace) noexcept
{
  return {reinterpret_cast<float*>(workspace.data() + plan.offset("odd_factor")),
          plan.factor_elements(1)};
}
//! @}

}  // namespace tersum::inline v0
