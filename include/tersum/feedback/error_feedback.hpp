// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What quantization lost is added to the next gradient.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>

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
  static constexpr bool adds_lost = true;  //!< Vectors do what `before` and `after` say.
  constexpr description describe() const { return {"error_feedback"}; }

  //! What is encoded.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float before(Arithmetic const&, float gradient, float kept) const
  {
    return Arithmetic::add(gradient, kept);
  }
  //! What is kept.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float after(Arithmetic const&, float, float lost, float) const
  {
    return lost;
  }
};

static_assert(feedback<no_feedback>, "tersum: must model tersum::feedback");
static_assert(feedback<error_feedback>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
