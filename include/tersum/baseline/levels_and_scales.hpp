// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the levels of `group_absmax` lie, and how the scales of its groups are stored.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @brief exp(-x) for x >= 0, to float precision, at compile time.
[[nodiscard]] constexpr float falling_exponential(float x) noexcept
{
  // The series for a small fraction of x, squared again and again.
  double term = 1, sum = 1;
  double const share = -static_cast<double>(x) / 64;
  for (int i = 1; i < 12; ++i) {
    term *= share / i;
    sum += term;
  }
  for (int i = 0; i < 6; ++i) { sum *= sum; }
  return static_cast<float>(sum);
}

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

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    return static_cast<float>(i) / static_cast<float>(last);
  }
};

//! @brief Distances that grow by the factor 1 + 2 e^2: the error grows with the value.
//! Source: the multiplicative levels of DynamiQ (SIGCOMM'26), with e of .23 for 2 and 4 bits and .1 for 8.
//! @tparam Hundredths  100 e.
//! @tparam Wide        100 e where there are more than 16 levels of one sign.
template <int Hundredths, int Wide = Hundredths>
struct geometric_levels {
  static_assert(Hundredths >= 1 && Hundredths <= 50 && Wide >= 1 && Wide <= 50,
                "tersum: geometric_levels<Hundredths, Wide> needs 1 to 50");

  static constexpr bool uniform = false;

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    double const e = (last > 15 ? Wide : Hundredths) / 100.0;
    return static_cast<float>(growth(e, i) / growth(e, last));
  }

 private:
  //! (1 + 2 e^2)^i - 1
  [[nodiscard]] static constexpr double growth(double e, int i) noexcept
  {
    double out = 1;
    for (int k = 0; k < i; ++k) { out *= 1 + 2 * e * e; }
    return out - 1;
  }
};

//! @brief Powers of two from 1 downwards, and zero.
//!
//! With a stochastic dither this is natural dithering by the largest magnitude of a group, 2^(bits - 1) - 1 levels of it:
//! the variance of a value is an eighth of its square at most, but for values below the smallest level. Source:
//! Horvath et al., Natural Compression for Distributed Deep Learning (2019), natural dithering.
struct natural_levels {
  static constexpr bool uniform = false;

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    return i == 0 ? 0.0f : detail::bits_float(static_cast<std::uint32_t>(127 + i - last) << 23);
  }
};

//! @brief Decades that share the levels as a dynamic exponent does: each has twice as many, at equal distances, as the decade
//! below it.
//!
//! The magnitudes of dynamic tree quantization, in the middle of cells of (.1, 1], (.01, .1] and so on, and zero. With 8 bits
//! there are 64 in the highest decade, whose last is .993. There is no level 1, so a group's largest magnitude loses .7 % (the
//! published map has a level 1 for positive values, in the place of the second zero of codes with a sign), and `no_dither` is
//! needed. Source: Dettmers, 8-Bit Approximations for Parallelism in Deep Learning (ICLR'16); Dettmers et al., 8-bit Optimizers
//! via Block-wise Quantization (ICLR'22).
struct dynamic_levels {
  static constexpr bool uniform = false;

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    if (i == 0) { return 0.0f; }
    int decade_levels = 1;
    double decade     = 1;
    while (2 * decade_levels <= i) { decade_levels *= 2; }
    for (int above = 2 * decade_levels; above <= last; above *= 2) { decade /= 10; }
    return static_cast<float>(decade * (0.1 + 0.9 * (i - decade_levels + 0.5) / decade_levels));
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
  static constexpr float excess =
    2.16f;  //!< Mean square of what rounding up multiplies by: 3 / (2 log 2).

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

//! @brief One byte: multiples of 1/255.
struct byte_scale {
  static constexpr int bits     = 8;
  static constexpr float excess = 1.0f;

  [[nodiscard]] TERSUM_INLINE static std::uint32_t encode(float ratio) noexcept
  {
    auto const below = static_cast<std::uint32_t>(ratio * 255.0f);
    return below + (below < 255u && decode(below) < ratio ? 1u : 0u);
  }
  [[nodiscard]] TERSUM_INLINE static float decode(std::uint32_t code) noexcept
  {
    return static_cast<float>(code) * (1.0f / 255.0f);
  }
};

//! @brief Two bytes: a bfloat16.
struct bfloat16_scale {
  static constexpr int bits     = 16;
  static constexpr float excess = 1.0f;

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
