// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Groups of small floats with shared scales: the formats MXFP4, MXFP8 and NVFP4 as levels and scales of
//! `group_absmax`.
//!
//! These formats are defined for values of a tensor; here they hold values over the chunk's largest magnitude, which travels as
//! a float. So a group's E8M0 scale is a power of two times that magnitude, and the scale that NVFP4 has for a tensor
//! belongs to a chunk.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/small_float.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief Levels of `group_absmax`: the magnitudes of a `small_float` over the largest of them.
//!
//! A code is the float's own bits. Values are rounded to the nearest level in steps of 2^-20 of the largest, half-way ones to
//! the smaller magnitude and not, as in the source, to the even one; levels below those steps are not used. Source: OCP
//! Microscaling Formats (MX) Specification 1.0 (2023); Rouhani et al., Microscaling Data Formats for Deep Learning (2023).
template <int Exponent, int Mantissa, int Reserved = 0>
struct float_levels : small_float<Exponent, Mantissa, Reserved> {
  using floats = small_float<Exponent, Mantissa, Reserved>;
  constexpr description describe() const { return {"float_levels", Exponent, Mantissa, Reserved}; }

  static constexpr bool uniform      = false;
  static constexpr int fraction_bits = Mantissa;
  //! The largest magnitude over the power of two below it: 1.5 of E2M1.
  static constexpr float significand =
    1 +
    static_cast<float>(floats::last & ((1 << Mantissa) - 1)) / static_cast<float>(1 << Mantissa);

  [[nodiscard]] static constexpr float level(int i, int) noexcept
  {
    return floats::magnitude(static_cast<std::uint32_t>(i)) / floats::largest();
  }
};

//! @name The elements of MX formats
//! @{
using e2m1_levels = float_levels<2, 1>;     //!< FP4: up to 6
using e4m3_levels = float_levels<4, 3, 1>;  //!< FP8: up to 448, one NaN
//! @}

//! @name Scales that may be below a group's largest magnitude, which then has the last level
//! @{

//! @brief E8M0: a byte for a power of two, chosen as MX formats choose it, times the significand of the largest level.
//!
//! The power of two is that below the group's largest magnitude, so a magnitude between `significand` and 2 of them saturates.
//! Scales are up to `significand` times the chunk's largest magnitude: a chunk with a value of 2^127 or more decodes to NaN.
//! Source: OCP Microscaling Formats (MX) Specification 1.0; Rouhani et al., Microscaling Data Formats for Deep Learning
//! (2023), algorithm 1.
//! @tparam Levels  `float_levels` of the elements.
template <class Levels>
struct e8m0_scale {
  static constexpr int bits       = 8;
  static constexpr bool saturates = true;
  constexpr description describe() const { return {"e8m0_scale", Levels{}}; }

  [[nodiscard]] TERSUM_INLINE static std::uint32_t encode(float ratio) noexcept
  {
    return 127u - detail::minimum(detail::maximum(detail::float_bits(ratio) >> 23, 1u), 127u);
  }
  [[nodiscard]] TERSUM_INLINE static float decode(std::uint32_t code) noexcept
  {
    return detail::bits_float((127u - detail::minimum(code, 126u)) << 23) * Levels::significand;
  }
};

//! @brief E4M3: a byte for a float of three bits, without its sign, rounded to nearest, ties to even, in units of 1/448.
//!
//! As the scales of NVFP4, where the largest magnitude of the whole has the scale 448. Source: NVIDIA, Introducing NVFP4 for
//! Efficient and Accurate Low-Precision Inference (2025).
struct e4m3_scale {
  static constexpr int bits       = 8;
  static constexpr bool saturates = true;
  constexpr description describe() const { return {"e4m3_scale"}; }

  [[nodiscard]] TERSUM_INLINE static std::uint32_t encode(float ratio) noexcept
  {
    return e4m3::round(ratio * 448.0f);
  }
  [[nodiscard]] TERSUM_INLINE static float decode(std::uint32_t code) noexcept
  {
    return e4m3::magnitude(code) * 0.00223214286f;
  }
};
//! @}

//! @name Quantizers of these formats, to the nearest level
//! @{
//! MXFP4 and MXFP8: groups of 32 with an E8M0 scale.
template <class Levels>
using mx_quantizer = group_absmax<Levels::bits, 32, Levels, e8m0_scale<Levels>, no_dither>;
//! NVFP4: groups of 16 with an E4M3 scale.
using nvfp4_quantizer = group_absmax<4, 16, e2m1_levels, e4m3_scale, no_dither>;
//! @}

}  // namespace tersum::inline v0
