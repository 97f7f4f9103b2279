// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback that forgets: by a factor a step, by averaging, or all of it every so many steps; in the unit of the learning rate.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/feedback/error_feedback.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief `error_feedback` of decay * gain * residual.
//!
//! The gain is what the caller has written to `feedback_gain`, 1 before that. With the learning rate of the last step over that of this
//! one, residuals keep the unit of the update. Owners of two shots weigh what they keep in the same way. With decay 1, gain 1 and no reset
//! the bits are those of `error_feedback`. A step in which a gradient is not finite leaves all that is kept as it was, without decay, reset
//! and gain. It costs one multiplication a coordinate more than `error_feedback`. Source: CLAN (Zhong et al., 2021) for the gain.
struct decayed_feedback {
  static constexpr bool enabled   = true;
  static constexpr bool adds_lost = true;
  constexpr description describe() const { return {"decayed_feedback", decay, reset_every}; }

  float decay = 1;  //!< By what a step multiplies what the last one lost: 0 to 1.
  std::uint32_t reset_every =
    0;  //!< Each so many exchanges one begins without what was kept; 0: none does.

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float before(Arithmetic const& math,
                                                float gradient,
                                                float kept) const
  {
    return error_feedback{}.before(math, gradient, kept);
  }
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float after(Arithmetic const&, float, float lost, float) const
  {
    return lost;
  }
  //! @param step  Exchanges before this one.
  [[nodiscard]] TERSUM_HOST_DEVICE float kept_weight(std::uint64_t step, float gain) const
  {
    return reset_every != 0 && step % reset_every == 0 ? 0.0f : decay * gain;
  }
};

//! @brief Keeps a moving average of what steps lost: averaging * residual + (1 - averaging) * lost, and adds it to the gradient.
//!
//! Gain and reset are those of `decayed_feedback`. Owners of two shots keep nothing.
//! Source: LoCo (Xie et al., 2024), equations of the compensation error.
struct averaged_feedback {
  static constexpr bool enabled = true;
  constexpr description describe() const { return {"averaged_feedback", averaging, reset_every}; }

  float averaging           = 0.5f;  //!< Of the older average: 0 up to below 1.
  std::uint32_t reset_every = 0;     //!< As in `decayed_feedback`.

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float before(Arithmetic const& math,
                                                float gradient,
                                                float kept) const
  {
    return error_feedback{}.before(math, gradient, kept);
  }
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float after(Arithmetic const&,
                                               float,
                                               float lost,
                                               float kept) const
  {
    float const fresh = Arithmetic::multiply(Arithmetic::subtract(1.0f, averaging), lost);
    return Arithmetic::fma(averaging, kept, fresh);
  }
  [[nodiscard]] TERSUM_HOST_DEVICE float kept_weight(std::uint64_t step, float gain) const
  {
    return decayed_feedback{1, reset_every}.kept_weight(step, gain);
  }
};

static_assert(feedback<decayed_feedback>, "tersum: must model tersum::feedback");
static_assert(feedback<averaged_feedback>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
