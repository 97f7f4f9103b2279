// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback of what did not travel alone.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/feedback/error_feedback.hpp>

namespace tersum::inline v0 {

//! @brief Keeps what did not travel, and clears what did: for codecs of which only some coordinates travel.
//!
//! What a coordinate that travels loses by being rounded is dropped. A coordinate whose rounded value is zero counts as not sent.
//! Owners of two shots keep nothing.
//! Source: Lin et al., DGC (ICLR'18): v = v + u, and v is cleared where it is sent.
struct cleared_feedback {
  static constexpr bool enabled     = true;
  static constexpr bool clears_sent = true;
  constexpr description describe() const { return {"cleared_feedback"}; }

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float before(Arithmetic const& math,
                                                float gradient,
                                                float kept) const
  {
    return error_feedback{}.before(math, gradient, kept);
  }
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float after(Arithmetic const&,
                                               float value,
                                               float lost,
                                               float) const
  {
    // What is not finite is kept, so that codecs see it and leave the residual.
    return lost == value || !(Arithmetic::subtract(lost, lost) == 0) ? lost : 0.0f;
  }
};

static_assert(feedback<cleared_feedback>, "tersum: must model tersum::feedback");

}  // namespace tersum::inline v0
