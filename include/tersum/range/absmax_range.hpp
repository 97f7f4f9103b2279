// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The step of a chunk from its largest magnitude over all ranks.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>

namespace tersum::inline v0 {

//! @brief The ranks take the maximum of the largest magnitude of each rotated chunk: no coordinate clips.
//!
//! step = magnitude * clip * head-room / Quantizer::max_level. The magnitude is known only after the rotation. Kernels
//! therefore rotate twice, once to measure and once to encode, which is cheaper than writing the rotated gradient to
//! memory. With `tracked_correlation` one more scalar per tensor travels, its squared norm.
//! @tparam Headroom  `no_headroom`, `fixed_headroom` or `tracked_correlation`.
//! @tparam Scalar    float or bfloat16 on the wire; bfloat16 is rounded up, so that nothing clips.
template <headroom Headroom = no_headroom, gradient_element Scalar = float>
struct absmax_range {
  static_assert(!std::is_same_v<Scalar, half>,
                "tersum: the agreed scalars travel as float or bfloat16");
  using scalar                           = Scalar;
  using op                               = native_max<Scalar>;
  using headroom_type                    = Headroom;
  static constexpr statistic measurement = statistic::chunk_magnitude;
  constexpr description describe() const { return {"absmax_range", clip, headroom, Scalar{}}; }

  float clip = 1.0f;  //!< The range in units of the largest magnitude.
  Headroom headroom{};

  //! @name Plain form, and what an agreed scalar says
  //! @{
  static constexpr bool measures_rotated = true;

  template <class Group, std::size_t Size>
  [[nodiscard]] TERSUM_HOST_DEVICE float measure(Group const& g,
                                                 float const (&x)[Size],
                                                 float (&)[Size]) const
  {
    constexpr int size = static_cast<int>(Size);
    return g.maximum(size, [&](int i) { return x[i]; });
  }
  //! The range of one rank, in units of the gradient.
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed, int, float) const noexcept
  {
    return agreed;
  }
  //! What no rotated value of any rank exceeds.
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return agreed;
  }
  //! @}
};

static_assert(quantization_range<absmax_range<>>, "tersum: must model tersum::quantization_range");

}  // namespace tersum::inline v0
