// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The scales of a chunk in a metric, the same on the CPU and in kernels.

#pragma once

#include <tersum/config.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Whether nothing is known of the coordinates of a chunk with this largest scale.
[[nodiscard]] TERSUM_INLINE bool is_unknown_scale(float largest) { return largest < 0x1p-100f; }

//! @brief What the scales of a chunk are raised to. Where nothing is known it is 1.
//! @param math     The arithmetic of a group.
//! @param largest  The largest magnitude of the chunk's scales, NaN above infinity.
template <class Arithmetic, class Metric>
[[nodiscard]] TERSUM_INLINE float least_scale(Arithmetic const& math,
                                              Metric const& metric,
                                              float largest)
{
  if (is_unknown_scale(largest)) { return 1.0f; }
  float const least = metric.least(math, largest);
  return least < 0x1p-120f ? 0x1p-120f : least;
}

//! @brief The scale of all coordinates of a chunk after its first decoded mean: its root mean square.
//! @param square  The squared norm of the mean.
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE float first_scale(Arithmetic const&, float square, std::uint32_t length)
{
  return Arithmetic::square_root(Arithmetic::divide(square, static_cast<float>(length)));
}

//! The scale of a coordinate.
[[nodiscard]] TERSUM_INLINE float raised_scale(float kept, float least)
{
  return kept > least ? kept : least;
}

}  // namespace tersum::inline v0::detail
