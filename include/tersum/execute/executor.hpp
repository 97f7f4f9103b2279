// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an executor must offer, as far as a concept can say without a codec.

#pragma once

#include <tersum/execute/instruction_set.hpp>
#include <tersum/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

// clang-format off
namespace tersum::inline v0 {

namespace detail {

//! What `each` is given, and what `run` is given: the simplest that there is.
struct any_item {
  template <class Memory> void operator()(Memory const&, std::size_t) const {}
};
struct any_sum {
  using element                     = float;
  static constexpr bool native      = true;
  static constexpr bool maximum     = false;
  static constexpr bool associative = false;
  static constexpr bool exact       = false;
  float operator()(float a, float b) const { return a + b; }
};
struct any_kernel {
  static constexpr int threads = 32;
  static constexpr int shared  = 0;
  template <class Context> void operator()(Context const&) const {}
};

}  // namespace detail

//! @name Atoms of an executor
//! @{
template <class T> concept has_check  = requires(T const e) { { e.check() } -> std::same_as<status>; }; //!< Whether it can run.
template <class T> concept has_copy   = requires(T const e, float* to, float const* from) {
  { e.copy(to, from, std::size_t{}) } -> std::same_as<status>; };               //!< copy(to, from, count), arrays that do not overlap.
template <class T> concept has_reduce = requires(T const e, float* to, float const* from) {
  { e.reduce(detail::any_sum{}, to, from, from, std::size_t{}) } -> std::same_as<status>; }; //!< reduce(op, to, a, b, count); `to` may be `a` or `b`.
template <class T> concept has_each_item   = requires(T const e) { { e.each(detail::any_item{}, std::size_t{}) } -> std::same_as<status>; }; //!< item(memory, i) for 0 <= i < count, in any order.
template <class T> concept has_clear  = requires(T const e, float* to) { { e.clear(to, std::size_t{}) } -> std::same_as<status>; };     //!< Sets elements to zero.
template <class T> concept has_run    = requires(T const e) { { e.run(detail::any_kernel{}, std::uint64_t{}) } -> std::same_as<status>; }; //!< kernel(context) in so many blocks, of `Kernel::threads` and `Kernel::shared` bytes.
template <class T> concept has_threads      = requires(T const e) { { e.threads } -> std::convertible_to<int>; };                  //!< Threads of the host.
template <class T> concept has_instructions = requires(T const e) { { e.instructions } -> std::convertible_to<instruction_set>; }; //!< What they may use.
//! Besides: the same in at most so many blocks, which wait for each other: all of them are resident, on a `grid_context`.
template <class T> concept has_run_together = requires(T const e) { { e.run_together(detail::any_kernel{}, std::uint64_t{}) } -> std::same_as<status>; };
//! @}

//! What does the work: `cpu_executor`, `cuda_executor`. Exchanges also call perform(stage, plan, args) for each stage.
template <class T> concept executor = has_check<T> && has_copy<T> && has_reduce<T> && has_each_item<T>;

//! An executor that works with threads of the host.
template <class T> concept host_executor = executor<T> && has_threads<T> && has_instructions<T>;

//! An executor that launches kernels on block contexts. `exchange_launches`, from which it derives, performs the
//! stages with `run`, `copy` and `clear`. Where it has no `run_together`, one block does what several would.
template <class T> concept launching_executor = executor<T> && has_clear<T> && has_run<T>;

}  // namespace tersum::inline v0
// clang-format on

namespace tersum::inline v0::detail {

//! @brief Launches a kernel whose blocks wait for each other, in at most `blocks` of them; in one where the executor cannot have
//! several resident together.
template <class Executor, class Kernel, class... Args>
[[nodiscard]] status run_together(Executor const& exec,
                                  Kernel const& kernel,
                                  std::uint64_t blocks,
                                  Args const&... args)
{
  if constexpr (has_run_together<Executor>) {
    if (blocks > 1) { return exec.run_together(kernel, blocks, args...); }
  }
  return exec.run(kernel, blocks == 0 ? 0 : 1, args...);
}

}  // namespace tersum::inline v0::detail
