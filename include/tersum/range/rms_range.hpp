// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The step of a chunk from the mean square of its coordinates over all ranks, and the squared norm of a chunk in memory.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/reduce/native.hpp>

namespace tersum::inline v0 {

//! @brief The sum of squares of a chunk: 256 accumulators (128 of a chunk of 128), chained by fused multiply-adds over the
//! chunk, then added pairwise from the lowest index bit up. That tree is part of the wire format.
//! @param scratch  Overwritten.
template <class Group, std::size_t Size>
[[nodiscard]] TERSUM_INLINE float square_norm(Group const& g,
                                              float const (&x)[Size],
                                              float (&scratch)[Size])
{
  constexpr int size = static_cast<int>(Size);
  constexpr int sums = detail::minimum(size, 256);
  g.each(sums, [&](int at) {
    float sum = 0.0f;
    for (int i = at; i < size; i += sums) { sum = Group::fma(x[i], x[i], sum); }
    scratch[at] = sum;
  });
  g.sync();
  for (int width = 1; width < sums; width *= 2) {
    g.each(sums / (2 * width), [&](int pair) {
      float& to = scratch[2 * width * pair];
      to        = Group::add(to, scratch[2 * width * pair + width]);
    });
    g.sync();
  }
  float const norm = scratch[0];
  g.sync();
  return norm;
}

//! @brief The ranks sum the squared norm of each chunk; the range is `clip` root mean squares.
//!
//! step = sqrt(sum / (world * chunk size)) * clip * head-room / Quantizer::max_level. The agreement needs only norms, which a
//! rotation does not change. So rotation, quantization and packing are one pass. Coordinates beyond the range are clipped.
//! @tparam Headroom  `no_headroom`, `fixed_headroom` or `tracked_correlation`.
//! @tparam Scalar    float or bfloat16 on the wire (never half: squares underflow and overflow it).
template <headroom Headroom = tracked_correlation, gradient_element Scalar = float>
struct rms_range {
  static_assert(!std::is_same_v<Scalar, half>,
                "tersum: squared norms underflow and overflow in half: use float or bfloat16");
  using scalar                           = Scalar;
  using op                               = native_sum<Scalar>;
  using headroom_type                    = Headroom;
  static constexpr statistic measurement = statistic::chunk_square_norm;
  constexpr description describe() const { return {"rms_range", clip, headroom, Scalar{}}; }

  //! Root mean squares from zero to the end of the grid. With `saturating_sum`, 0 stands for the best value for the
  //! number of ranks and the width of the lanes. `allocated_chunks` always take that value.
  float clip = 2.0f;
  Headroom headroom{};

  //! @name Plain form, and what an agreed scalar says
  //! @{
  static constexpr bool measures_rotated = false;

  template <class Group, std::size_t Size>
  [[nodiscard]] TERSUM_HOST_DEVICE float measure(Group const& g,
                                                 float const (&x)[Size],
                                                 float (&scratch)[Size]) const
  {
    return square_norm(g, x, scratch);
  }
  //! The range of one rank, in units of the gradient.
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed,
                                                    int world,
                                                    float coordinates) const noexcept
  {
    return ::sqrtf(agreed / (static_cast<float>(world) * coordinates));
  }
  //! What no rotated value of any rank exceeds.
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return ::sqrtf(agreed);
  }
  //! @}
};

static_assert(quantization_range<rms_range<>>, "tersum: must model tersum::quantization_range");

}  // namespace tersum::inline v0
