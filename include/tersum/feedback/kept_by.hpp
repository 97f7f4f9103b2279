// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! In which type feedback keeps what is lost, and who keeps it: ranks what the first encoding of two shots loses, owners the second's.
//! Without these, `error_feedback` and `decayed_feedback` have both do so where chunks are fixed.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief `Feedback` of the ranks alone: the state has no residual of owners, who add up their parts once.
template <feedback Feedback = error_feedback>
requires(Feedback::enabled) struct kept_by_ranks : Feedback {
  static constexpr bool ranks_only = true;
  constexpr description describe() const { return {"kept_by_ranks", Feedback::describe()}; }
};

//! @brief `Feedback` of the owners alone, for `two_shot` with `fixed_chunks`: 4 bytes of state
//! for each coordinate of the chunks that the rank owns, and none for others. The workspace is that of no feedback.
//!
//! For ranks whose first encoding loses next to nothing, or whose gradients have had a feedback of their own.
//! @tparam Feedback  One that adds what was lost: `error_feedback` or `decayed_feedback`.
template <feedback Feedback = error_feedback>
requires(Feedback::enabled&& has_adds_lost<Feedback>) struct kept_by_owners : Feedback {
  static constexpr bool owners_only = true;
  constexpr description describe() const { return {"kept_by_owners", Feedback::describe()}; }
};

//! @brief `Feedback` whose residuals, of ranks and of owners, take less of the state: bfloat16s 2 bytes a coordinate, not 4.
//!
//! What is kept is rounded at random to one of the two bfloat16s beside it, with its own value as the expected one, in the pass that writes
//! it. The draw is a function of seed, step, rank and coordinate, so that all executors keep the same bits. To the nearest would lose what
//! is added to a coordinate that waits long for its turn (docs/developer/research.md has the measurement). The memory that an exchange
//! moves falls by 2 bytes for each reading or writing of a coordinate's residual. Codecs of low-rank factors take floats.
//! @tparam Residual  bfloat16, or float, which changes nothing.
template <class Residual, feedback Feedback = error_feedback>
requires(gradient_element<Residual>&& Feedback::enabled) struct kept_in : Feedback {
  using stored_residual = Residual;
  constexpr description describe() const { return {"kept_in", Residual{}, Feedback::describe()}; }
};

static_assert(feedback<kept_by_ranks<>>, "tersum: must model tersum::feedback");
static_assert(feedback<kept_in<bfloat16>>, "tersum: must model tersum::feedback");
static_assert(feedback<kept_by_owners<>>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
