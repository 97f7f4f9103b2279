// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The exchange of a `sorted_codec`, whole and in parts.

#pragma once

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/sorted_codec.hpp>
#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Fills the state of a `sorted_codec`: as `initialize`.
template <executor Executor, sorting Codec>
status initialize(Executor const& exec,
                  plan<Codec> const& plan,
                  std::span<std::byte> state,
                  std::uint64_t seed);

//! @brief Replaces the gradient by the mean of all ranks: as `all_reduce_mean`, with `lines_wire` as its first round. If the
//! collective fails, the gradient is unchanged.
template <executor Executor, sorting Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce);

//! @name The exchange in parts
//!
//!     measure_lines(exec, plan, gradient, state, workspace)     then reduce lines_wire
//!     sort_matrices(exec, plan, gradient, state, workspace)
//!     an exchange of plan.inner() on plan.sorted(workspace), with plan.inner_state(state) and plan.inner_workspace(workspace)
//!     restore_matrices(exec, plan, gradient, state, workspace)
//!
//! Sorting and restoring alone make a permutation of the gradient, and undo it. All enqueue on the executor, and neither
//! allocate nor synchronize. *Errors*: those of `all_reduce_mean`, before anything is enqueued.
//! @{

//! @brief Reads the gradient, writes a key for each row and column: of its largest magnitude, in half octaves.
template <executor Executor, sorting Codec, gradient_memory Gradient>
status measure_lines(Executor const& exec,
                     plan<Codec> const& plan,
                     Gradient&& gradient,
                     std::span<std::byte> state,
                     std::span<std::byte> workspace);

//! The keys: a byte for each row and column of the matrices.
template <sorting Codec>
[[nodiscard]] wire<native_max<std::uint8_t>> lines_wire(plan<Codec> const& plan,
                                                        std::span<std::byte> workspace) noexcept;

//! @brief Sorts rows and columns by the keys, the largest first, equal ones in their order; reads the gradient, and writes
//! `plan.sorted(workspace)`. Without communication the keys are this rank's own.
template <executor Executor, sorting Codec, gradient_memory Gradient>
status sort_matrices(Executor const& exec,
                     plan<Codec> const& plan,
                     Gradient&& gradient,
                     std::span<std::byte> state,
                     std::span<std::byte> workspace);

//! @brief Reads `plan.sorted(workspace)`, writes the gradient, each coordinate to where it came from, rounded to the nearest element
//! that is finite.
template <executor Executor, sorting Codec, gradient_memory Gradient>
status restore_matrices(Executor const& exec,
                        plan<Codec> const& plan,
                        Gradient&& gradient,
                        std::span<std::byte> state,
                        std::span<std::byte> workspace);
//! @}

}  // namespace tersum::inline v0

#include <tersum/exchange/detail/sorted.ipp>
