// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What all ranges share: the squared norm of a chunk in memory, and head-room, which says how much wider the range of the sum is than that
//! of one rank. With a head-room of 2 a step is twice as large, so that sums of codes up to twice one rank's largest code fit their lanes.
//! And the range of which the others are variants: the step of a chunk from the mean square of its coordinates over all ranks.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/status.hpp>

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

//! @brief No head-room: one rank's range is mapped to the whole lane, as Han et al. (HotNets'24) describe it.
//!
//! It is right for exact reducers, whose lanes are wide enough for the sum. A saturating sum clips wherever the ranks'
//! values do not cancel each other.
struct no_headroom {
  static constexpr bool tracked = false;
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr float factor(int, float) const noexcept
  {
    return 1.0f;
  }

  constexpr description describe() const { return {"no_headroom"}; }
};

//! @brief The sum's range is `multiple` times one rank's.
//!
//! Choose between the square root of the number of ranks, which is right for independent gradients, and the number of
//! ranks itself, with which no sum saturates.
struct fixed_headroom {
  static constexpr bool tracked = false;
  float multiple                = 0;  //!< 0 stands for sqrt(world).
  constexpr description describe() const { return {"fixed_headroom", multiple}; }

  //! An error unless `multiple` is finite and not negative. `plan::check` passes it on.
  [[nodiscard]] constexpr status check() const noexcept
  {
    if (multiple >= 0 && multiple <= std::numeric_limits<float>::max()) { return {}; }
    return {error_code::invalid_argument,
            "the head-room's multiple must be finite and above 0, or 0 for sqrt(world.size)"};
  }

  [[nodiscard]] TERSUM_HOST_DEVICE float factor(int world, float) const noexcept
  {
    return multiple > 0.0f ? multiple : ::sqrtf(static_cast<float>(world));
  }
};

//! @brief The sum's range follows the last exchange: sqrt(|sum|^2 / energy of one rank), measured on the decoded sum.
//!
//! It costs no communication, since every rank decodes the same sum. The factor lies between 1, for gradients that
//! cancel, and the number of ranks, for equal ones. Quantization steps that are too small cost far more than steps that
//! are too large, hence the margin. The first exchange assumes equal gradients, unless the step would be so large that
//! rounding loses more than a rank's gradient has: see `first_ratio`.
struct tracked_correlation {
  static constexpr bool tracked = true;
  float margin                  = 1.1f;  //!< The measured ratio is multiplied by this.
  constexpr description describe() const { return {"tracked_correlation", margin}; }

  //! An error unless `margin` is finite and above 0. `plan::check` passes it on.
  [[nodiscard]] constexpr status check() const noexcept
  {
    if (margin > 0 && margin <= std::numeric_limits<float>::max()) { return {}; }
    return {error_code::invalid_argument, "the head-room's margin must be finite and above 0"};
  }

  //! @brief What `ratio` is before the first exchange: the number of ranks, or what makes the range at most `widest` times as
  //! wide as one rank's.
  [[nodiscard]] constexpr float first_ratio(int world, float widest) const noexcept
  {
    float const ranks = static_cast<float>(world);
    return widest < ranks ? widest / margin : ranks;
  }

  //! How many times wider the range of the sum is.
  //! @param world  The number of ranks.
  //! @param ratio  sqrt(|sum|^2 / energy of a rank) of the last exchange; `first_ratio` before the first.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr float factor(int world, float ratio) const noexcept
  {
    float const wanted = ratio * margin;
    return detail::minimum(detail::maximum(wanted, 1.0f), static_cast<float>(world));
  }
};

static_assert(headroom<no_headroom>, "tersum: must model tersum::headroom");
static_assert(headroom<fixed_headroom>, "tersum: must model tersum::headroom");
static_assert(headroom<tracked_correlation>, "tersum: must model tersum::headroom");

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
