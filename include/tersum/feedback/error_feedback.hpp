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
};

//! @brief Keeps gradient + residual - own decoded codes for the next step, one float32 per coordinate.
//!
//! It is fused into encoding. The residual is zero where a tensor bypasses the codec. A step in which any rank's
//! gradient is not finite leaves all of it as it was, with the exceptions that docs/contracts.md lists. It covers this
//! rank's rounding and clipping, not what saturates in the sum. Source: Seide et al., 1-bit SGD (Interspeech'14).
struct error_feedback {
  static constexpr bool enabled   = true;
  static constexpr bool adds_lost = true;  //!< Vectors do what `before` and `after` say.

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

//! @brief Keeps own decoded codes instead of what they lost, until the exchange ends: for the codec of low-rank factors.
//!
//! `quantized_low_rank_codec` subtracts them from the rank's own gradient. They lie in the workspace, a float32 per
//! coordinate, and the next step starts afresh.
struct sent_values {
  static constexpr bool enabled  = true;
  static constexpr bool one_step = true;  //!< What is kept lies in the workspace, not in the state.

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float before(Arithmetic const&, float gradient, float) const
  {
    return gradient;
  }
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float after(Arithmetic const&,
                                               float value,
                                               float lost,
                                               float) const
  {
    return Arithmetic::subtract(value, lost);
  }
};

static_assert(feedback<sent_values>, "tersum: must model tersum::feedback");
static_assert(feedback<no_feedback>, "tersum: must model tersum::feedback");
static_assert(feedback<error_feedback>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
