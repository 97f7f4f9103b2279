// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the levels of `group_absmax` lie, and how the scales of its groups are stored.

#pragma once

#include <tersum/config.hpp>
#include <tersum/description.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @brief Whether levels are those of a width, if they have one of their own.
template <class Levels>
[[nodiscard]] constexpr bool suits_width(int bits) noexcept
{
  if constexpr (requires { Levels::bits; }) { return Levels::bits == bits; }
  return true;
}

//! @brief Whether a scale may be below what it was chosen for.
template <class Scale>
inline constexpr bool saturates_groups = requires
{
  requires Scale::saturates;
};

}  // namespace detail

//! @name Levels: level number i of 0 .. last, from 0 to 1
//! @{

//! @brief Equal distances.
struct linear_levels {
  static constexpr bool uniform = true;
  constexpr description describe() const { return {"linear_levels"}; }

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    return static_cast<float>(i) / static_cast<float>(last);
  }
};

//! @brief Powers of two from 1 downwards, and zero.
//!
//! With a stochastic dither this is natural dithering by the largest magnitude of a group, 2^(bits - 1) - 1 levels of it:
//! the variance of a value is an eighth of its square at most, but for values below the smallest level. Source:
//! Horvath et al., Natural Compression for Distributed Deep Learning (2019), natural dithering.
struct natural_levels {
  static constexpr bool uniform = false;
  constexpr description describe() const { return {"natural_levels"}; }

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    return i == 0 ? 0.0f : detail::bits_float(static_cast<std::uint32_t>(127 + i - last) << 23);
  }
};

//! @}

//! @name Scales: a group's largest magnitude over its chunk's, rounded up
//! `encode` takes a ratio from 0 to 1. `decode` of the code is not below that ratio, but for one rounding, unless the scale
//! `saturates`.
//! @{

//! @brief One byte: powers of two from 1 down to 2^-23.
struct power_of_two_scale {
  static constexpr int bits = 8;
  constexpr description describe() const { return {"power_of_two_scale"}; }

  [[nodiscard]] TERSUM_INLINE static std::uint32_t encode(float ratio) noexcept
  {
    std::uint32_t const exponent = (detail::float_bits(ratio) + 0x7fffffu) >> 23;
    return 127u - detail::minimum(detail::maximum(exponent, 104u), 127u);
  }
  [[nodiscard]] TERSUM_INLINE static float decode(std::uint32_t code) noexcept
  {
    return detail::bits_float((127u - code) << 23);
  }
};

//! @brief Two bytes: a bfloat16.
struct bfloat16_scale {
  static constexpr int bits = 16;
  constexpr description describe() const { return {"bfloat16_scale"}; }

  [[nodiscard]] TERSUM_INLINE static std::uint32_t encode(float ratio) noexcept
  {
    return (detail::float_bits(ratio) + 0xffffu) >> 16;
  }
  [[nodiscard]] TERSUM_INLINE static float decode(std::uint32_t code) noexcept
  {
    return detail::bits_float(code << 16);
  }
};
//! @}

}  // namespace tersum::inline v0
