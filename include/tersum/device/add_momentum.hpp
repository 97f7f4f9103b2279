// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Momentum before compression: a stage of its own, before the exchange, which all coordinates pass, also those that bypass.

#pragma once

#include <tersum/device/arrays.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/feedback/momentum.hpp>
#include <tersum/status.hpp>

#include <span>

namespace tersum::inline v0 {

//! @brief next[i] = rule.next(gradient[i], kept[i]), values[i] = rule.value(gradient[i], next[i]): what a codec is then given.
//!
//! *Reads* `gradient` and `kept`, *writes* `next` and `values`, all of one length, in the executor's memory. `values` may be
//! `gradient`, and `next` may be `kept`; otherwise no two of them overlap. *Needs* no workspace. *Errors*: other lengths, a null or
//! misaligned address, arrays that overlap, and what rule.check() says. Nothing was written then.
//!
//! Where a value or its momentum is not finite the momentum stays as it was, and the value tells the codec. If a step must also leave
//! the momenta when another rank's gradient was not finite, write them to another array, and exchange the two when the step is good.
//! A value beyond the halves is infinite in one. Momenta are floats, zeros at first; they are the caller's to keep with
//! the state, 4 bytes a coordinate, and an optimizer behind them has no momentum. The same bits on every executor. Enqueued on
//! the executor, one launch; does not synchronize.
//! @param rule  `heavy_ball`, `nesterov`, or one of your own.
template <executor Executor, momentum Momentum, readable_values Gradient, writable_values Values>
[[nodiscard]] status add_momentum(Executor const& exec,
                                  Momentum const& rule,
                                  Gradient const& gradient,
                                  std::span<float const> kept,
                                  std::span<float> next,
                                  Values&& values);

//! @brief momenta[i] = 0 where residual[i] is zero: DGC's momentum factor masking, after the exchange.
//!
//! Under `cleared_feedback` that is where a coordinate travelled, and also where momentum and residual cancelled to zero.
//! *Reads* `residual`, in what the state keeps it (`residuals_of`), *writes* `momenta`, in the executor's memory; they do not overlap.
//! *Errors*: other lengths, a null or misaligned address, arrays that overlap. Enqueued on the executor, one launch; does not
//! synchronize. Source: Lin et al., DGC (ICLR'18), section 3.3.
template <executor Executor, readable_values Residual>
[[nodiscard]] status mask_momentum(Executor const& exec,
                                   Residual const& residual,
                                   std::span<float> momenta);

}  // namespace tersum::inline v0

#include <tersum/device/detail/add_momentum.ipp>
