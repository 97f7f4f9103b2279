// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! In what the state holds what feedback keeps.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/types.hpp>

#include <type_traits>

namespace tersum::inline v0 {

//! @brief `Feedback` whose residuals, of ranks and of owners, take less of the state: bfloat16s 2 bytes a coordinate, not 4.
//!
//! What is kept is rounded at random to one of the two bfloat16s beside it, with its own value as the expected one, in the
//! pass that writes it. The draw is a function of seed, step, rank and coordinate, so that all executors keep the same
//! bits. To the nearest would lose what is added to a coordinate that waits long for its turn (docs/developer/research.md
//! has the measurement). The memory that an exchange moves falls by 2 bytes for each reading or writing of a coordinate's
//! residual. Codecs of low-rank factors take floats.
//! @tparam Residual  bfloat16, or float, which changes nothing.
template <class Residual, feedback Feedback = error_feedback>
requires(gradient_element<Residual>&& Feedback::enabled) struct kept_in : Feedback {
  using stored_residual = Residual;
  constexpr description describe() const { return {"kept_in", Residual{}, Feedback::describe()}; }
};

static_assert(feedback<kept_in<bfloat16>>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
