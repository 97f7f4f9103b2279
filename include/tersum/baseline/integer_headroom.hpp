// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A step that follows the last mean: IntSGD.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cmath>

namespace tersum::inline v0 {

//! @brief The step is proportional to the norm of the mean that the ranks decoded last, which all of them know.
//!
//! IntSGD rounds d coordinates of n ranks to multiples of sqrt(2 n / d) |g|, g being the last mean (more exactly what the last
//! step of training moved the parameters by, over its learning rate, or a moving average of that). Rounding at random then adds at most
//! half of the energy of g to the mean, for any number of ranks. With `global_range` and a clip of sqrt(2) times the
//! quantizer's largest code that is the step here, times the norm of the gradient now over its norm then: the ranks agree on
//! the norm of each tensor, which the source does without, so that no gradient is rounded with a step that is too small for it.
//! The factor is sqrt(|sum|^2 / energy of a rank / n), of |sum| between that of one rank's gradient and that of n equal ones; 1
//! before the first exchange. Source: Mishchenko et al., IntSGD: Adaptive Floatless Compression of Stochastic Gradients
//! (ICLR'22).
struct integer_headroom {
  static constexpr bool tracked = true;

  //! @brief What `ratio` is before the first exchange: as of independent gradients, sqrt(world).
  [[nodiscard]] constexpr float first_ratio(int world, float) const noexcept
  {
    double root = world;  // Newton's steps; 24 halve 65535 to its root and square the error away
    for (int i = 0; i < 24; ++i) { root = (root + world / root) / 2; }
    return static_cast<float>(root);
  }

  //! The step over that of independent gradients.
  //! @param world  The number of ranks.
  //! @param ratio  sqrt(|sum|^2 / energy of a rank) of the last exchange; `first_ratio` before the first.
  [[nodiscard]] TERSUM_HOST_DEVICE float factor(int world, float ratio) const noexcept
  {
    float const ranks = static_cast<float>(world);
    return detail::minimum(detail::maximum(ratio, 1.0f), ranks) / ::sqrtf(ranks);
  }
};

static_assert(headroom<integer_headroom>, "tersum: must model tersum::headroom");

}  // namespace tersum::inline v0
