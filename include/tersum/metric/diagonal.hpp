// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Errors count in units of a scale for each coordinate.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

namespace detail {

//! @brief The square root of zero or a number from 2^-100 on. That of others, such as infinity, may be NaN.
//! @{
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE float root_from_zero(Arithmetic const&, float value)
{
  return Arithmetic::square_root(value);
}
TERSUM_EXEC_CHECK_DISABLE
template <class Arithmetic>
requires requires { Arithmetic::square_root_from_zero(1.0f); }
[[nodiscard]] TERSUM_INLINE float root_from_zero(Arithmetic const&, float value)
{
  return Arithmetic::square_root_from_zero(value);
}
//! @}

}  // namespace detail

//! @brief The caller writes the scales, into `metric_scales` of the state: for example Adam's square root of the second moment.
//!
//! All ranks must write the same bits, before `measure` of the step for which they hold; `initialize` makes them zeros. A
//! zero says that nothing is known of a coordinate. Where a chunk has nothing but zeros it is encoded as it is. Under
//! `low_rank_codec` all this holds of a matrix in the place of a chunk.
struct given_diagonal {
  static constexpr bool scaled = true;
  constexpr description describe() const { return {"given_diagonal", floor}; }

  //! No coordinate counts more than the inverse of this times as much as another one of its chunk: above 0, at most 1.
  float floor = 0x1p-8f;

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float least(Arithmetic const&, float largest) const
  {
    return Arithmetic::multiply(floor, largest);
  }
};

//! @brief The library keeps the scales: square roots of the mean squares of the means that it decoded, without communication.
//!
//! Before a chunk's first mean that is not zero its scales are 1. After that they are all the root mean square of this mean,
//! which counts as `prior` means: single means would say too little of each coordinate. From there on every mean counts as
//! one, and old ones are forgotten in about `horizon` steps. Every rank decodes the same means, so all hold the same scales.
//! A step in which a rank's gradient is not finite leaves them as they were.
//! @tparam Scale  float, or bfloat16 for half of the state: what one step changes is often less than its 8 bits show, so a
//!                scale is rounded at random to one of its neighbours, with its own value as the expected one. All ranks
//!                draw the same.
template <class Scale>
struct kept_diagonal_in {
  static constexpr bool scaled = true;
  using stored_scale           = Scale;
  constexpr description describe() const
  {
    return {"kept_diagonal_in", Scale{}, floor, prior, horizon};
  }

  float floor   = 0x1p-8f;  //!< As of `given_diagonal`.
  float prior   = 8.0f;     //!< Steps, 1 or above.
  float horizon = 100.0f;   //!< Steps, 1 or above; Adam's beta_2 is 1 - 1 / horizon.

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float least(Arithmetic const&, float largest) const
  {
    return Arithmetic::multiply(floor, largest);
  }
  //! Over how many steps the mean of squares is, the next one included.
  [[nodiscard]] TERSUM_HOST_DEVICE float steps_averaged(float steps_before) const
  {
    float const all = steps_before + prior;
    return all < horizon ? all : horizon;
  }
  //! @brief With n steps averaged sqrt((1 - 1 / n) scale^2 + mean^2 / n).
  //!
  //! A product with 1 / n, which is the same for all values, and two fused additions are the quotient with all bits right
  //! (Brisebarre, Muller, Raina: Accelerating correctly rounded floating-point division when the divisor is known in advance, 2004).
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float update(Arithmetic const& math,
                                                float value,
                                                float scale,
                                                float steps_before) const
  {
    float const change =
      Arithmetic::multiply(Arithmetic::subtract(value, 1.0f), Arithmetic::add(value, 1.0f));
    float const steps    = steps_averaged(steps_before);
    float const inverse  = Arithmetic::divide(1.0f, steps);
    float const quotient = Arithmetic::multiply(change, inverse);
    float const part =
      Arithmetic::fma(Arithmetic::fma(-quotient, steps, change), inverse, quotient);
    return Arithmetic::multiply(scale, detail::root_from_zero(math, Arithmetic::add(1.0f, part)));
  }
};

//! @brief Scales that the library keeps in float.
using kept_diagonal = kept_diagonal_in<float>;

static_assert(metric<given_diagonal>, "tersum: must model tersum::metric");
static_assert(metric<kept_diagonal>, "tersum: must model tersum::metric");
static_assert(metric<kept_diagonal_in<bfloat16>>, "tersum: must model tersum::metric");

}  // namespace tersum::inline v0
