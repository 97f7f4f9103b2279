// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small floats that share a scale with their neighbours, as MXFP4, MXFP8 and NVFP4, in the registers of one thread: kernel body.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
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

  //! @name For `thread_scaled_floats`
  //! @{
  //! What values are multiplied by where `one` stands for 1.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float inverse(Context const&, float one)
  {
    return one > 0 ? detail::minimum(Context::divide(1.0f, one), 0x1p127f) : 0.0f;
  }
  //! The code of a magnitude, at random by a byte of a draw of sixteen.
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
  //! @}

 private:
  static constexpr std::uint32_t rebias = (128u - (1u << (Exponent - 1))) << 23;
  static constexpr std::uint32_t least  = rebias + (1u << 23);  //!< The least normal number's bits.
};

//! @name The elements of MX formats and of NVFP4
//! @{
using e2m1 = small_float<2, 1>;     //!< FP4: up to 6
using e4m3 = small_float<4, 3, 1>;  //!< FP8: up to 448, one NaN
//! @}

//! @name Scales of blocks
//! `of` makes the code of the scale of a block of `Element`s from the largest magnitude, in units; NaN's where that is not
//! finite. With `Up` no element is above the largest there is; otherwise the scale is that of the format, under which some
//! may be. `decode` gives what 1 stands for.
//! @{
//! @brief E8M0, a power of two: that below the largest magnitude, over that below the largest element.
//!
//! Source: OCP Microscaling Formats (MX) Specification 1.0 (2023), sections 5.4 and 6.3.
struct e8m0_block_scale {
  template <class Element, bool Up, class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t of(Context const&, float most, float unit)
  {
    constexpr std::uint32_t top   = detail::float_bits(Element::largest());
    constexpr std::uint32_t lower = (top >> 23) - 127;
    std::uint32_t const up        = Up ? 0x7fffffu - (top & 0x7fffffu) : 0u;
    std::uint32_t const power     = (Context::bits(Context::divide(most, unit)) + up) >> 23;
    return detail::is_finite(most) ? detail::maximum(power, lower) - lower : 255u;
  }
  [[nodiscard]] TERSUM_INLINE static constexpr float decode(std::uint32_t code) noexcept
  {
    return detail::bits_float(code == 0 ? 0x00400000u : code == 255 ? 0x7fffffffu : code << 23);
  }
};

//! @brief E4M3: the largest magnitude over the largest element, to nearest, 448 at most.
//!
//! Source: NVIDIA, Introducing NVFP4 for Efficient and Accurate Low-Precision Inference (2025).
struct e4m3_block_scale {
  template <class Element, bool Up, class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t of(Context const&, float most, float unit)
  {
    float const scale        = Context::divide(most, Context::multiply(Element::largest(), unit));
    std::uint32_t const code = e4m3::round(scale);
    bool const below         = Up && code < e4m3::last && e4m3::magnitude(code) < scale;
    return detail::is_finite(most) ? code + (below ? 1u : 0u) : 127u;
  }
  [[nodiscard]] TERSUM_INLINE static constexpr float decode(std::uint32_t code) noexcept
  {
    return code == 127 ? detail::bits_float(0x7fffffffu) : e4m3::magnitude(code);
  }
};
//! @}

//! @brief A block of `Size` values as small floats with one scale, all of them in the registers of one thread.
//!
//! It needs no shared memory and no barrier, and threads may call it alone. Register i holds value i, whose code has the
//! bits i bits .. of `packed`. It suits what `thread_hadamard` leaves, and a thread's 32 values in the *wire* arrangement
//! of `block_chunk`. To nearest, ties to even, codes are those of the format. At random, a scale is rounded up, so that no
//! value is cut, and the mean of what is decoded is the value, to 1/512 of the distance of the two numbers about it. A
//! block with a value that is not finite decodes to NaN; at random, one with magnitudes above 1.5 * 2^127 may decode to
//! infinities. On sm_90 a value of NVFP4 takes 32 instructions to encode at random, of which 6 make random numbers; one of
//! an MX format 25, and 20 to nearest.
//!
//! @par Example
//! @snippet examples/kernels/cast_to_nvfp4.hpp encode
//! @tparam Size     Values of a block, 16 or a multiple.
//! @tparam Element  A `small_float`.
//! @tparam Scale    `e8m0_block_scale` or `e4m3_block_scale`.
//! @tparam Dither   `independent` or `stratified` to round at random, `no_dither` to nearest.
template <int Size, class Element, class Scale, dither_source Dither>
struct thread_scaled_floats {
  static_assert(
    Size > 0 && Size % 16 == 0 && Size * Element::bits % 32 == 0,
    "tersum: thread_scaled_floats<Size> needs a multiple of 16 whose codes fill whole words");
  using element    = Element;
  using scale_type = Scale;
  using dither     = Dither;

  static constexpr int words = Size * Element::bits / 32;  //!< Of a block's codes.

  //! @brief Returns the scale's code.
  //! @param number  That of this block among all: it places the random numbers.
  //! @param key     Makes them.
  //! @param unit    What numbers are multiplied by besides their scale: 1 for MX formats, that of the tensor for NVFP4,
  //!                times what the values are too large by, such as 4 behind `thread_hadamard<16>`. At least 2^-117.
  template <block_context Context>
  TERSUM_BODY static std::uint32_t encode(Context const& ctx,
                                          std::uint64_t number,
                                          dither_key const& key,
                                          float unit,
                                          float const (&v)[detail::extent(Size)],
                                          std::uint32_t (&packed)[detail::extent(words)])
  {
    std::uint32_t most[1] = {}, scale[1];
    TERSUM_UNROLL
    for (float const x : v) { most[0] = detail::maximum(most[0], Context::bits(x) & 0x7fffffffu); }
    encode_groups(ctx, Element{}, number, key, unit, most, v, packed, scale);
    return scale[0];
  }

  //! @brief What `encode` is made of: the same of several groups of neighbours, each with a scale.
  //! @param element  Rounds: `small_float`, or what has its `bits`, `inverse` and `code`.
  //! @param most     The bits of the largest magnitude of each group, also of values that other threads have.
  //! @param scales   Receives the codes of the scales.
  template <std::size_t Groups, class Context>
  TERSUM_BODY static void encode_groups(Context const& ctx,
                                        Element const& element,
                                        std::uint64_t number,
                                        dither_key const& key,
                                        float unit,
                                        std::uint32_t const (&most)[Groups],
                                        float const (&v)[detail::extent(Size)],
                                        std::uint32_t (&packed)[detail::extent(words)],
                                        std::uint32_t (&scales)[Groups])
  {
    constexpr bool random    = Dither::rounds > 0;
    constexpr int each       = Size / static_cast<int>(Groups);
    std::uint32_t const mask = detail::dither_mask<Dither>(key);
    TERSUM_UNROLL
    for (std::uint32_t& word : packed) { word = 0; }
    philox_block draw{};
    float inverse = 0;
    TERSUM_UNROLL
    for (int i = 0; i < Size; ++i) {
      if (i % each == 0) {
        std::uint32_t& scale = scales[i / each];
        scale = Scale::template of<Element, random>(ctx, Context::from_bits(most[i / each]), unit);
        inverse = Element::inverse(ctx, Context::multiply(Scale::decode(scale), unit));
      }
      if constexpr (random) {
        if (i % 16 == 0) {
          auto const place = number * (Size / 16) + static_cast<unsigned>(i / 16);
          draw = philox4x32<Dither::rounds, typename Context::product>(Dither::counter(place, key),
                                                                       key.seed);
        }
      }
      float const x = ::fabsf(Context::multiply(v[i], inverse));
      detail::write_code<Element::bits>(
        packed, i, element.template code<Dither>(ctx, x, draw, mask, i % 16));
      int const sign = Element::bits * (i + 1) - 1;
      packed[sign / 32] |= Context::bits(v[i]) >> (31 - sign % 32) & (1u << sign % 32);
    }
  }

  //! @brief The values, from what `encode` returned and wrote.
  template <block_context Context>
  TERSUM_BODY static void decode(Context const&,
                                 std::uint32_t const (&packed)[detail::extent(words)],
                                 std::uint32_t scale,
                                 float unit,
                                 float (&v)[detail::extent(Size)])
  {
    constexpr std::uint32_t sign = 1u << (Element::bits - 1);
    float const one              = Context::multiply(Scale::decode(scale), unit);
    TERSUM_UNROLL
    for (int i = 0; i < Size; ++i) {
      std::uint32_t const code = detail::read_code<Element::bits>(packed, i);
      float const x            = Context::multiply(Element::magnitude(code & (sign - 1)), one);
      v[i] = Context::from_bits(Context::bits(x) | (code & sign) << (32 - Element::bits));
    }
  }
};

//! @name The formats
//! @{
template <dither_source Dither = no_dither>
using thread_mxfp4 = thread_scaled_floats<32, e2m1, e8m0_block_scale, Dither>;
template <dither_source Dither = no_dither>
using thread_mxfp8 = thread_scaled_floats<32, e4m3, e8m0_block_scale, Dither>;
template <dither_source Dither = no_dither>
using thread_nvfp4 = thread_scaled_floats<16, e2m1, e4m3_block_scale, Dither>;
//! @}

}  // namespace tersum::inline v0
