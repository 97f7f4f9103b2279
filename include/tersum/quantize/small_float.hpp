// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Floats of 4 to 8 bits.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

//! @brief A float of a sign, `Exponent` and `Mantissa` bits, subnormals included.
//! @tparam Exponent  Bits of the exponent, with a bias of 2^(Exponent - 1) - 1.
//! @tparam Mantissa  Bits of the fraction.
//! @tparam Reserved  How many of the highest codes stand for infinity and NaN. None of them is ever encoded.
template <int Exponent, int Mantissa, int Reserved = 0>
struct small_float {
  static_assert(Exponent >= 2 && Exponent <= 5 && Mantissa >= 1 && Exponent + Mantissa <= 7,
                "tersum: small_float<Exponent, Mantissa> needs 2 to 5 and 1 or more, 7 in all");
  static_assert(Reserved >= 0 && Reserved <= 1 << Mantissa,
                "tersum: small_float<Exponent, Mantissa, Reserved> needs 0 to 2^Mantissa");

  static constexpr int bits = 1 + Exponent + Mantissa;                      //!< Of a code.
  static constexpr int last = (1 << (Exponent + Mantissa)) - 1 - Reserved;  //!< Of the largest.

  //! @brief The magnitude that bits without a sign stand for.
  [[nodiscard]] TERSUM_INLINE static constexpr float magnitude(std::uint32_t code) noexcept
  {
    // A subnormal number is the normal one with its fraction, less the least normal one.
    constexpr std::uint32_t hidden = 1u << Mantissa;
    bool const subnormal           = code < hidden;
    float const normal =
      detail::bits_float(((code + (subnormal ? hidden : 0u)) << (23 - Mantissa)) + rebias);
    return normal - (subnormal ? detail::bits_float(least) : 0.0f);
  }
  [[nodiscard]] TERSUM_INLINE static constexpr float largest() noexcept { return magnitude(last); }

  //! @brief The bits of a number next to a magnitude; those of the largest one for what is above it, and for NaN.
  //! @param noise  Is added in units of the distance of the numbers about it before the sum is rounded to the nearest, ties
  //!               to even. With a number drawn evenly from -1/2 to 1/2 the mean is the magnitude.
  [[nodiscard]] TERSUM_INLINE static std::uint32_t round(float magnitude, float noise = 0) noexcept
  {
    float const x = smaller(magnitude, largest());
    // The power of two that x lies above, over the least.
    std::uint32_t const power = to_words(larger(to_integers(to_bits(x) - least), 0)) & 0x7f800000u;
    float const distance      = from_bits(power + least - (Mantissa << 23));
    // The last bit of a sum with this is a distance. It has another half, so that no sum is below its power of two.
    std::uint32_t const unit = power + least + ((23 - Mantissa) << 23) + 0x400000u;
    return to_bits(fma(noise, distance, x) + from_bits(unit)) - unit + (power >> (23 - Mantissa));
  }

  //! For `thread_scaled_floats`: what values are multiplied by where `one` stands for 1.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float inverse(Context const&, float one)
  {
    return one > 0 ? detail::minimum(Context::divide(1.0f, one), 0x1p127f) : 0.0f;
  }
  //! For the same: the code of a magnitude, at random by a byte of a draw of sixteen.
  template <class Dither, class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t code(
    Context const&, float magnitude, philox_block const& draw, std::uint32_t mask, int byte)
  {
    float noise = 0;
    if constexpr (Dither::rounds > 0) {
      // 128 + (byte + 1/2) / 256
      std::uint32_t const bytes = Context::select_bytes(
        draw.word[byte / 4] ^ mask, 0x43000080u, 0x7504u | static_cast<unsigned>(byte % 4 * 16));
      noise = Context::subtract(Context::from_bits(bytes), 128.5f);
    }
    return round(magnitude, noise);
  }

 private:
  static constexpr std::uint32_t rebias = (128u - (1u << (Exponent - 1))) << 23;
  static constexpr std::uint32_t least  = rebias + (1u << 23);  //!< The least normal number's bits.
};

//! @name The elements of MX formats and of NVFP4
//! @{
using e2m1 = small_float<2, 1>;     //!< FP4: up to 6
using e4m3 = small_float<4, 3, 1>;  //!< FP8: up to 448, one NaN
//! @}

}  // namespace tersum::inline v0
