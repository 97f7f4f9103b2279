// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges on the CPU: plain memory, any number of threads, the same bits for all of them.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/codec.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tersum::inline v0 {

//! @brief The widest instruction set of this machine.
[[nodiscard]] inline instruction_set best_instruction_set() noexcept
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return instruction_set::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return instruction_set::avx2;
  }
#endif
  return instruction_set::baseline;
}

//! @brief Runs on this CPU; calls return when the work is done.
//!
//! All memory that its calls are given is the host's. Threads come from OpenMP if it is switched on in the compiler
//! (-fopenmp); otherwise everything runs on the calling thread. No member changes the result. *Errors* are those of `check`.
struct cpu_executor {
  int threads                  = 1;                       //!< 1 to 4096.
  instruction_set instructions = best_instruction_set();  //!< Must be one that this machine has.
  tersum::tuning tuning        = {};  //!< Its `cpu` is used, but by calls on arrays.

  //! @brief Whether this executor can run: threads and instructions are in range.
  [[nodiscard]] status check() const noexcept
  {
    if (threads < 1 || threads > 4096) {
      return {error_code::invalid_argument, "cpu_executor.threads must be between 1 and 4096"};
    }
    cpu_tuning const& numbers = tuning.cpu;
    if (numbers.item_stretch == 0 || numbers.step_stretch == 0 || numbers.coordinate_stretch == 0 ||
        numbers.least_selected == 0) {
      return {error_code::invalid_argument, "cpu_executor.tuning has a stretch of nothing"};
    }
    if (instructions > best_instruction_set()) {
      return {
        error_code::unsupported,
        "cpu_executor.instructions is a set that this CPU lacks: use best_instruction_set() or less"};
    }
    return {};
  }

  //! @brief Does a stage of `Codec::stages`, or `stage::initialize`. Exchanges call it; they check the arguments first.
  template <class Stage, class Codec, class Element>
  [[nodiscard]] status perform(Stage const& stage,
                               plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const
  {
    detail::with_subnormals const scope;
    return run_stage(
      stage, detail::cpu_work<Codec, Element>{threads, instructions, plan, args, tuning.cpu});
  }

  //! @name Arrays
  //! @{

  //! to[i] = op(a[i], b[i]) for `count` elements; `to` may be `a` or `b`.
  template <reduce_op Op>
  [[nodiscard]] status reduce(Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    if (status const s = check(); !s.ok()) { return s; }
    detail::with_subnormals const scope;
    detail::reduce_array(threads, instructions, op, to, a, b, count, tuning.cpu.least_reduced);
    return {};
  }

  //! item(memory, i) for 0 <= i < count, in any order.
  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const
  {
    if (status const s = check(); !s.ok()) { return s; }
    detail::with_subnormals const scope;
    std::size_t const stretch = tuning.cpu.item_stretch;
    detail::parallel_for(threads, (count + stretch - 1) / stretch, [&](std::uint64_t i) {
      std::size_t const end = detail::minimum<std::size_t>((i + 1) * stretch, count);
      for (std::size_t at = i * stretch; at < end; ++at) { item(detail::host_memory{}, at); }
    });
    return {};
  }

  //! Copies `count` elements between arrays that do not overlap.
  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    if (count > 0) { std::memcpy(to, from, count * sizeof(T)); }
    return {};
  }
  //! @}
};

static_assert(host_executor<cpu_executor>, "tersum: must model tersum::host_executor");

}  // namespace tersum::inline v0
