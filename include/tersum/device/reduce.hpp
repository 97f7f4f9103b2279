// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Payload + payload, and the payloads of n ranks in their order, in one launch.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>

#include <span>

namespace tersum::inline v0 {

//! @brief to[i] = op(a[i], b[i]).
//!
//! *Reads* `a` and `b`, *writes* `to`, each to.size() elements of the executor's memory. `to` may begin where `a` or `b`
//! begins; otherwise it must not overlap them. Arrays need the alignment of their elements; arrays that are aligned to 16
//! bytes are faster. *Needs* no workspace. *Errors*: a size that is not to.size(), a null or misaligned address, an overlap.
//! The result is the same on every executor; which of `a` and `b` comes first matters only to operations that are not
//! commutative. Enqueued on the executor; does not synchronize.
//! @param op  `saturating_add<b>`, `native_sum<T>`, `native_max<T>`, the `op` of a wire, or one of your own.
template <executor Executor, reduce_op Op>
[[nodiscard]] status reduce(Executor const& exec,
                            Op const& op,
                            std::span<typename Op::element> to,
                            std::span<typename Op::element const> a,
                            std::span<typename Op::element const> b);

//! @brief to[i] = op(.. op(op(p[0][i], p[1][i]), p[2][i]) .., p[n-1][i]): the payloads of n ranks in the order of the ranks.
//!
//! So the result is that of n-1 calls on two, also of operations that are not associative, with one pass over memory
//! instead of n-1. *Reads* to.size() elements from each address, *writes* `to`, which may be payloads[0] and must not
//! overlap the others. *Needs* no workspace; the list itself lies in the host's memory and is not needed after the call.
//! One launch for up to 64 payloads, one more for each further 63, and as many again for elements that are not whole
//! vectors of 16 bytes in all arrays. One payload is copied. *Errors*: no payload, a null or misaligned address, an
//! overlap. Enqueued on the executor; does not synchronize.
//! @param payloads  The first element of each rank's payload, in memory of the executor.
template <executor Executor, reduce_op Op>
[[nodiscard]] status reduce(Executor const& exec,
                            Op const& op,
                            std::span<typename Op::element> to,
                            std::span<typename Op::element const* const> payloads);

//! @brief The same where the payloads lie one after the other, as an all-gather leaves them. *Errors*: those of a list, and
//! a number of ranks out of range or whose payloads are not all of `gathered`.
//! @param gathered  `ranks` payloads of to.size() elements.
//! @param ranks     1 to 4096.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp decode
template <executor Executor, reduce_op Op>
[[nodiscard]] status reduce(Executor const& exec,
                            Op const& op,
                            std::span<typename Op::element> to,
                            std::span<typename Op::element const> gathered,
                            int ranks);

}  // namespace tersum::inline v0

#include <tersum/device/detail/reduce.ipp>
