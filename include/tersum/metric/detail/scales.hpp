// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The scales of a chunk in a metric, the same on the CPU and in kernels.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

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
#if defined(__CUDA_ARCH__)
  return ::fmaxf(kept, least);  // one instruction, where the comparison takes two
#else
  return kept > least ? kept : least;
#endif
}

//! @name What rounds scales to bfloat16
//! The draw of a coordinate is of 16 bits, each value alike over the steps, new in each step, the same on every rank.
//! @{
inline constexpr std::uint32_t draw_stride = 0x9e37u;  // 2^16 times the golden ratio, odd

//! The draw of a chunk's first coordinate; that of coordinate i is i `draw_stride` more. Bits above 16 mean nothing.
[[nodiscard]] TERSUM_INLINE std::uint32_t first_draw(std::uint64_t chunk, std::uint64_t sign_key)
{
  return sign_bits(chunk, sign_key ^ 0x9e3779b97f4a7c15u);
}

//! No scale is larger.
template <class Scale>
inline constexpr float largest_scale = std::is_same_v<Scale, float> ? 0x1.fffffep127f : 0x1.fep127f;

//! @brief A scale as it is kept: rounded down if the bits that go and the draw have a sum below 2^16. If it is too large or NaN,
//! it is what was kept before. Floats need no draw.
template <class Scale>
[[nodiscard]] TERSUM_INLINE float kept_scale(float next, float kept, std::uint32_t draw)
{
  float const usable = next <= largest_scale<Scale> ? next : kept;
  if (std::is_same_v<Scale, float>) { return usable; }
  return bits_float((float_bits(usable) + (draw & 0xffffu)) & 0xffff0000u);
}
//! @}

//! @brief A whole chunk in the units of a metric, in place of a pointer to it: CPU kernels divide where they load.
template <class Element, class Scale>
struct divided {
  Element const* from;
  Scale const* scales;
  float least;  //!< What the scales are raised to.

  template <class Index>
  [[nodiscard]] TERSUM_INLINE divided operator+(Index index) const
  {
    return {from + index, scales + index, least};
  }
  template <class Index>
  [[nodiscard]] TERSUM_INLINE float operator[](Index index) const
  {
    return to_float(from[index]) / raised_scale(to_float(scales[index]), least);
  }
};

//! @brief Where a whole chunk in the units of a metric goes, in place of a pointer: CPU kernels multiply where they store.
//! @tparam Keeps  Scales follow the values: `kept_diagonal::update` of `steps` averaged.
template <class Element, class Scale, bool Keeps>
struct multiplied {
  Element* to;
  Scale* scales;
  float least;  //!< What the scales are raised to.
  float steps;
  float inverse;       //!< 1 / steps.
  std::uint32_t draw;  //!< Of the first coordinate.

  [[nodiscard]] TERSUM_INLINE multiplied operator+(int index) const
  {
    std::uint32_t const next = draw + static_cast<std::uint32_t>(index) * draw_stride;
    return {to + index, scales + index, least, steps, inverse, next};
  }
};

//! What kernels take in place of a pointer to a chunk.
template <class T>
inline constexpr bool in_place_of_pointer = std::is_pointer_v<T>;
template <class Element, class Scale>
inline constexpr bool in_place_of_pointer<divided<Element, Scale>> = true;
template <class Element, class Scale, bool Keeps>
inline constexpr bool in_place_of_pointer<multiplied<Element, Scale, Keeps>> = true;

template <class T>
concept chunk_pointer = in_place_of_pointer<T>;

//! The elements to which kernels round what they store there.
template <class T>
struct stored_element;
template <class Element>
struct stored_element<Element*> {
  using type = Element;
};
template <class Element, class Scale, bool Keeps>
struct stored_element<multiplied<Element, Scale, Keeps>> {
  using type = float;  // rounded after the multiplication
};

}  // namespace tersum::inline v0::detail
