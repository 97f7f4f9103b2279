// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small floats that share a scale with their neighbours, as MXFP4, MXFP8 and NVFP4, in the registers of one thread: kernel body.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/block/thread_codes.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/small_float.hpp>
#include <tersum/random/philox.hpp>

namespace tersum::inline v0 {

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
//! It needs no shared memory and no barrier, and threads may call it alone. Register i holds value i, whose code has the bits i bits .. of
//! `packed`. It suits what `thread_hadamard` leaves, and a thread's 32 values in the *wire* arrangement of `block_chunk`. To nearest, ties
//! to even, codes are those of the format. At random, a scale is rounded up, so that no value is cut, and the mean of what is decoded is
//! the value, to 1/512 of the distance of the two numbers about it. A block with a value that is not finite decodes to NaN; at random, one
//! with magnitudes above 1.5 * 2^127 may decode to infinities. On sm_90 a value of NVFP4 takes 30 instructions to encode at random, of
//! which 6 make random numbers; one of an MX format 18 to nearest, and 5 more at random.
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
  using codes      = thread_codes<Element::bits, Size>;

  static constexpr int words = codes::words;

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
    std::uint32_t const most[1] = {Context::bits(thread_norm<Size>::largest(ctx, v))};
    std::uint32_t scale[1];
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
      codes::put_signed(
        ctx, packed, i, element.template code<Dither>(ctx, x, draw, mask, i % 16), v);
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
      std::uint32_t const code = codes::get(packed, i);
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
