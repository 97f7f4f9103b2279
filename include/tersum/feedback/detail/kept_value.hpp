// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What feedback keeps as the state holds it, the same on the CPU and in kernels.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/types.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! Bits of the largest bfloat16: magnitudes from here on are not rounded up.
inline constexpr std::uint32_t largest_kept = 0x7f7f0000u;

//! @brief The float that is kept of another one: the same, or one of the bfloat16s beside it, the nearer the likelier, so that the
//! other one is the expected one. The magnitude is rounded down if the bits that go and the draw have a sum below 2^16.
template <class Residual>
[[nodiscard]] TERSUM_INLINE float round_to_kept(float value, std::uint32_t draw)
{
  if (std::is_same_v<Residual, float>) { return value; }
  std::uint32_t const bits = float_bits(value);
  std::uint32_t const more = (bits & 0x7fffffffu) < largest_kept ? draw & 0xffffu : 0u;
  return bits_float((bits + more) & 0xffff0000u);
}

//! @brief The same as an element of the state.
template <class Residual>
[[nodiscard]] TERSUM_INLINE Residual kept_value(float value, std::uint32_t draw)
{
  float const rounded = round_to_kept<Residual>(value, draw);
  if constexpr (std::is_same_v<Residual, float>) {
    return rounded;
  } else {
    return Residual::from_bits(static_cast<std::uint16_t>(float_bits(rounded) >> 16));
  }
}

//! @brief Where feedback keeps values of a chunk, in place of a pointer: CPU kernels round to what is kept where they store.
template <class Residual>
struct kept_at {
  Residual* to;
  std::uint32_t draw;  //!< Of the first coordinate.

  template <class Index>
  [[nodiscard]] TERSUM_HOST_INLINE kept_at operator+(Index index) const
  {
    return {to + index, draw + static_cast<std::uint32_t>(index) * draw_stride};
  }
};

//! Stores a value as vectors store theirs.
//! @{
template <class Element>
TERSUM_HOST_INLINE void store_value(Element* to, float value)
{
  *to = from_float<Element>(value);
}
template <class Residual>
TERSUM_HOST_INLINE void store_value(kept_at<Residual> const& at, float value)
{
  *at.to = kept_value<Residual>(value, at.draw);
}
//! @}

//! @brief What is kept of an element of a matrix. Below the bound are 2^25 steps without a flag; beyond it, what a wire made or lost.
inline constexpr float kept_below = 0x1p80f;
[[nodiscard]] TERSUM_INLINE float kept_of_matrix(float v)
{
  return ::fabsf(v) < kept_below ? v : 0;
}

}  // namespace tersum::inline v0::detail
