// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One step for a whole tensor, from its norm.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>

namespace tersum::inline v0 {

//! @brief The ranks take the maximum of the squared norm of each tensor; the range is `clip` root mean squares.
//!
//! step = sqrt(largest / coordinates) * clip * head-room / Quantizer::max_level. One scalar per tensor travels. Unless the
//! whole tensor is rotated, chunks of much energy are clipped, and chunks of little energy use few of the codes. Source:
//! the released code of THC (NSDI'24), whose `clip` leaves 1/1024 of a normal distribution outside the range.
//! @tparam Headroom  `no_headroom`, `fixed_headroom` or `tracked_correlation`.
//! @tparam Scalar    float or bfloat16 on the wire.
template <headroom Headroom = no_headroom, gradient_element Scalar = float>
struct global_range {
  static_assert(!std::is_same_v<Scalar, half>,
                "tersum: squared norms underflow and overflow in half: use float or bfloat16");
  using scalar                           = Scalar;
  using op                               = native_max<Scalar>;
  using headroom_type                    = Headroom;
  static constexpr statistic measurement = statistic::tensor_square_norm;
  constexpr description describe() const { return {"global_range", clip, headroom, Scalar{}}; }

  float clip = 3.2971933f;  //!< Root mean squares from zero to the end of the grid.
  Headroom headroom{};

  //! @name Plain form, and what an agreed scalar says
  //! @{
  static constexpr bool measures_rotated = false;

  template <class Group, std::size_t Size>
  [[nodiscard]] TERSUM_HOST_DEVICE float measure(Group const& g,
                                                 float const (&x)[Size],
                                                 float (&scratch)[Size]) const
  {
    return square_norm(g, x, scratch);  // of a chunk: the library adds those of a tensor
  }
  //! The range of one rank, in units of the gradient.
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed,
                                                    int,
                                                    float coordinates) const noexcept
  {
    return ::sqrtf(agreed / coordinates);
  }
  //! What no rotated value of any rank exceeds.
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return ::sqrtf(agreed);
  }
  //! @}
};

static_assert(quantization_range<global_range<>>, "tersum: must model tersum::quantization_range");

}  // namespace tersum::inline v0
