// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Momentum before compression: what is encoded is not the gradient but a momentum that the rank keeps.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/status.hpp>

#include <concepts>

namespace tersum::inline v0 {

// clang-format off
//! @name Atoms of a momentum
//! @{
template <class T> concept has_momentum_next  = requires(T const m, float v) {
  { m.next(detail::any_group{}, v, v) } -> std::same_as<float>; };  //!< next(arithmetic of a group, gradient, kept): the momentum after this step.
template <class T> concept has_momentum_value = requires(T const m, float v) {
  { m.value(detail::any_group{}, v, v) } -> std::same_as<float>; }; //!< value(arithmetic, gradient, next): what is encoded instead of the gradient.
//! @}

//! What of earlier gradients is encoded besides this one: `heavy_ball`, `nesterov`. If it has a `check()`, calls pass that status on:
//! for parameters that can be wrong. The first momentum kept is 0.
template <class T> concept momentum = policy<T> && has_momentum_next<T> && has_momentum_value<T>;
// clang-format on

namespace detail {

[[nodiscard]] constexpr status check_mu(float mu) noexcept
{
  if (mu >= 0 && mu < 1) { return {}; }
  return {error_code::invalid_argument, "mu of a momentum must be from 0 to below 1"};
}

}  // namespace detail

//! @brief Heavy-ball momentum: u = mu u + g, and u is encoded. `add_momentum` (device/add_momentum.hpp) does so with arrays.
//!
//! With `cleared_feedback`, or any feedback that adds what was kept, it is the momentum correction of DGC, and the optimizer behind it
//! has no momentum of its own. The product is rounded, then the sum. Source: Lin et al., DGC (ICLR'18), equation 4.
struct heavy_ball {
  float mu = 0.9f;  //!< Of the momentum before: 0 up to below 1.

  [[nodiscard]] constexpr status check() const noexcept { return detail::check_mu(mu); }

  //! The momentum after this step.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float next(Arithmetic const&, float gradient, float kept) const
  {
    return Arithmetic::add(Arithmetic::multiply(mu, kept), gradient);
  }
  //! What is encoded.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float value(Arithmetic const&, float, float next) const
  {
    return next;
  }
};

//! @brief Nesterov's momentum: m = mu m + g, and g + mu m is encoded.
//!
//! The momentum is that of `heavy_ball`. Source: CLAN (Zhong et al., 2021), as BytePS-Compress has it.
struct nesterov {
  float mu = 0.9f;  //!< Of the momentum before: 0 up to below 1.

  [[nodiscard]] constexpr status check() const noexcept { return detail::check_mu(mu); }

  //! The momentum after this step.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float next(Arithmetic const& math,
                                              float gradient,
                                              float kept) const
  {
    return heavy_ball{mu}.next(math, gradient, kept);
  }
  //! What is encoded.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float value(Arithmetic const&, float gradient, float next) const
  {
    return Arithmetic::add(Arithmetic::multiply(mu, next), gradient);
  }
};

static_assert(momentum<heavy_ball>, "tersum: must model tersum::momentum");
static_assert(momentum<nesterov>, "tersum: must model tersum::momentum");

}  // namespace tersum::inline v0
