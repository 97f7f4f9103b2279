// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What quantization lost is added to the next gradient.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

//! @brief No feedback: every step starts afresh. Costs nothing.
struct no_feedback {
  static constexpr bool enabled = false;
  constexpr description describe() const { return {"no_feedback"}; }
};

//! @brief Keeps gradient + residual - own decoded codes for the next step, one float32 per coordinate.
//!
//! It is fused into encoding. The residual is zero where a tensor bypasses the codec. A step in which any rank's
//! gradient is not finite leaves all of it as it was, with the exceptions that docs/contracts.md lists. It covers this
//! rank's rounding and clipping, not what saturates in the sum. Source: Seide et al., 1-bit SGD (Interspeech'14).
struct error_feedback {
  static constexpr bool enabled   = true;
  static constexpr bool adds_lost = true;
  constexpr description describe() const { return {"error_feedback"}; }

  //! What is encoded.
  TERSUM_OF_VALUES
  template <class Arithmetic, class Value>
  [[nodiscard]] TERSUM_HOST_DEVICE Value before(Arithmetic const&,
                                                Value const& gradient,
                                                Value const& kept) const
  {
    return Arithmetic::add(gradient, kept);
  }
  //! What is kept.
  TERSUM_OF_VALUES
  template <class Arithmetic, class Value>
  [[nodiscard]] TERSUM_HOST_DEVICE Value
  after(Arithmetic const&, Value const&, Value const& lost, Value const&) const
  {
    return lost;
  }
};

static_assert(feedback<no_feedback>, "tersum: must model tersum::feedback");
static_assert(feedback<error_feedback>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
