// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Payload + payload, and the payloads of n ranks in their order, in one launch.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/reduce/detail/array_reduction.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/status.hpp>

#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief to[i] = op(a[i], b[i]).
//!
//! *Reads* `a` and `b`, *writes* `to`, each to.size() elements of the executor's memory. `to` may begin where `a` or `b` begins; otherwise
//! it must not overlap them. Arrays need the alignment of their elements; arrays that are aligned to 16 bytes are faster. *Needs* no
//! workspace. *Errors*: a size that is not to.size(), a null or misaligned address, an overlap. The result is the same on every executor;
//! which of `a` and `b` comes first matters only to operations that are not commutative. Enqueued on the executor; does not synchronize.
//! @param op  `saturating_add<b>`, `native_sum<T>`, `native_max<T>`, the `op` of a wire, or one of your own.
template <executor Executor, reduce_op Op>
[[nodiscard]] status reduce(Executor const& exec,
                            Op const& op,
                            std::span<typename Op::element> to,
                            std::span<typename Op::element const> a,
                            std::span<typename Op::element const> b)
{
  using element = typename Op::element;
  status const s =
    detail::argument_check{}
      .require(a.size() == to.size(), "a has not as many elements as to")
      .require(b.size() == to.size(), "b has not as many elements as to")
      .address(to, alignof(element), "to is a null pointer, or not aligned to its elements")
      .address(a, alignof(element), "a is a null pointer, or not aligned to its elements")
      .address(b, alignof(element), "b is a null pointer, or not aligned to its elements")
      .require(detail::begin_alike(to, a) || detail::are_disjoint(to, a),
               "to overlaps a, and is not where it is")
      .require(detail::begin_alike(to, b) || detail::are_disjoint(to, b),
               "to overlaps b, and is not where it is")
      .result();
  return s.ok() ? exec.reduce(op, to.data(), a.data(), b.data(), to.size()) : s;
}

//! @brief to[i] = op(.. op(op(p[0][i], p[1][i]), p[2][i]) .., p[n-1][i]): the payloads of n ranks in the order of the ranks, which lie one
//! after the other, as an all-gather leaves them.
//!
//! So the result is that of n-1 calls on two, also of operations that are not associative, with one pass over memory
//! instead of n-1. *Reads* `gathered`, *writes* `to`, which may be the first payload and must not overlap the others. *Needs* no
//! workspace. One launch for up to 64 payloads, one more for each further 63, and as many again for elements that are not whole
//! vectors of 16 bytes in all payloads. One payload is copied. *Errors*: a number of ranks out of range or whose payloads are not all
//! of `gathered`, a null or misaligned address, an overlap. Enqueued on the executor; does not synchronize.
//! @param gathered  `ranks` payloads of to.size() elements.
//! @param ranks     1 to 65534.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp decode
template <executor Executor, reduce_op Op>
[[nodiscard]] status reduce(Executor const& exec,
                            Op const& op,
                            std::span<typename Op::element> to,
                            std::span<typename Op::element const> gathered,
                            int ranks)
{
  using element           = typename Op::element;
  std::size_t const count = to.size();
  auto const payloads     = static_cast<std::size_t>(ranks);
  status const s =
    detail::argument_check{}
      .require(ranks >= 1 && ranks <= 65534, "ranks must be between 1 and 65534")
      .require(gathered.size() == count * payloads,
               "gathered has not to.size() elements of each rank")
      .address(to, alignof(element), "to is a null pointer, or not aligned to its elements")
      .address(
        gathered, alignof(element), "gathered is a null pointer, or not aligned to its elements")
      .require(detail::begin_alike(to, gathered) || detail::are_disjoint(to, gathered),
               "to overlaps gathered, and is not the first payload")
      .result();
  if (!s.ok()) { return s; }
  status outcome = exec.check();
  if (ranks == 1 && outcome.ok()) {
    return gathered.data() == to.data() ? status{} : exec.copy(to.data(), gathered.data(), count);
  }
  // As many payloads at a time as a launch takes. Every list after the first begins with the result so far.
  for (std::size_t next = 0; next < payloads && outcome.ok();) {
    detail::array_list<element> from{};
    if (next > 0) { from.array[from.count++] = to.data(); }
    while (next < payloads && from.count < detail::array_list<element>::most) {
      from.array[from.count++] = gathered.data() + count * next++;
    }
    outcome = detail::perform(
      exec,
      [&](int threads, auto set) {
        auto const arrays = static_cast<std::size_t>(from.count);
        detail::reduce_arrays(threads, set, op, to.data(), from.array, arrays, count);
      },
      [&](auto const& on) { return detail::reduce_on_blocks(on, op, to, from); });
  }
  return outcome;
}

}  // namespace tersum::inline v0
