// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of groups of coordinates with a scale each, near the largest magnitude, for codecs that decode before they add.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum_baselines/detail/group_units.hpp>
#include <tersum_baselines/group_quantizer.hpp>
#include <tersum_baselines/levels_and_scales.hpp>

#include <array>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief Every group of coordinates has a scale near its largest magnitude, and its values are rounded to levels of that
//! scale.
//!
//! The chunk's largest magnitude travels as a float, that of each group as a fraction of it, rounded up; or otherwise by scales
//! that say so (`saturates`), under which a larger magnitude gets the last level. There is no rotation, so a large coordinate
//! affects only its own group. Gradients whose energy differs from place to place lose little; normal values lose more than
//! under `lloyd_max`. Stochastic rounding is unbiased to 1/256 of the distance between two levels, but for what saturates;
//! `no_dither` rounds to the nearest level.
//!
//! A chunk of C coordinates, in the terms of docs/wire_format.md, has Bits C/32 words of codes, then C/Block scales, packed
//! into words, the first in the lowest bits, and as its float32 scale the largest magnitude M. Position 32 t + 8 r + i is coordinate r C/4 + 8 t +
//! i, for t < C/32, r < 4, i < 8; the block that begins at coordinate r C/4 + j Block has scale number 4 j + r. In float32, for a block with the
//! largest magnitude m:
//!
//!     code of the scale = Scale::encode(m / M)
//!     s     = Scale::decode(code of the scale) * M       below 2^-120: all codes of the block are 0
//!     x     = |v| * (2^20 / s), an integer, rounded down, at most 2^20
//!     l     = the number of the last level (`mark`) that is not above x; f = x - level over the distance to the next
//!     code  = l + (512 f > 2 * byte + 1), or l + (512 f > 256) with no_dither; the sign is its highest bit
//!
//! If levels are at equal distances, l and f come from x (2^(Bits-1) - 1) in integers instead. The byte is drawn for position chunk * C +
//! position; an owner draws independent bytes as rank 65534, for chunk (place in the part) n + part. If M is below 2^-100, the scale and the
//! codes are 0; if M is not finite, the scale is NaN and the codes are 0. An estimate is (scale * M) * level by fused multiply-add; for the
//! mean, M is multiplied by 1/n first.
//!
//! The family of MX formats (Rouhani et al., Microscaling Data Formats, 2023; `float_levels.hpp` has their elements and scales).
//! @tparam Bits    Width of a code, its sign included, 2 to 8.
//! @tparam Block   Coordinates with one scale, 16 to 128; a chunk has 16 of them or a multiple.
//! @tparam Levels  `linear_levels`, `natural_levels` or `float_levels<Exponent, Mantissa>`.
//! @tparam Scale   `power_of_two_scale`, `bfloat16_scale`, `e8m0_scale<Levels>` or `e4m3_scale`.
//! @tparam Dither  `stratified`, `independent` or `no_dither`.
template <int Bits,
          int Block,
          class Levels         = linear_levels,
          class Scale          = power_of_two_scale,
          dither_source Dither = stratified>
struct group_absmax {
  static_assert(Bits >= 2 && Bits <= 8, "tersum: group_absmax<Bits, Block> needs 2 <= Bits <= 8");
  static_assert(Block == 16 || Block == 32 || Block == 64 || Block == 128,
                "tersum: group_absmax<Bits, Block> has blocks of 16, 32, 64 or 128");
  constexpr description describe() const
  {
    return {"group_absmax", Bits, Block, Levels{}, Scale{}, Dither{}};
  }

  using dither      = Dither;
  using scale       = Scale;
  using levels_type = Levels;

  static constexpr int bits       = Bits;             //!< Width of a code.
  static constexpr int block      = Block;            //!< Coordinates with one scale.
  static constexpr int block_bits = Scale::bits;      //!< Of a scale.
  static constexpr int magnitudes = 1 << (Bits - 1);  //!< Levels of one sign, zero included.
  static constexpr bool unbiased  = Dither::rounds > 0 && !detail::saturates_groups<Scale>;
  static constexpr bool uniform   = Levels::uniform;  //!< Whether levels have equal distances.

  static_assert(Scale::bits == 8 || Scale::bits == 16,
                "tersum: the scale of a block has 8 or 16 bits");
  static_assert(detail::suits_width<Levels>(Bits),
                "tersum: group_absmax<Bits, Block, float_levels> needs the bits of that float");

  //! @brief Levels from 0, ascending; the largest that is used is at most 1.
  static constexpr std::array<float, detail::extent(magnitudes)> level = [] {
    std::array<float, detail::extent(magnitudes)> out{};
    for (int i = 0; i < magnitudes; ++i) {
      out[static_cast<unsigned>(i)] = Levels::level(i, magnitudes - 1);
    }
    return out;
  }();

  static_assert(Dither::rounds == 0 || level[magnitudes - 1] >= 1,
                "tersum: group_absmax needs no_dither with levels that end below 1");

  //! @brief The same levels in units of 1 / block_one, at least one but for level 0, and one more that no value reaches.
  static constexpr std::array<std::uint32_t, detail::extent(magnitudes + 1)> mark = [] {
    std::array<std::uint32_t, detail::extent(magnitudes + 1)> out{};
    for (unsigned i = 0; i < magnitudes; ++i) {
      out[i] = detail::maximum(static_cast<std::uint32_t>(level[i] * detail::block_one + 0.5f),
                               i > 0 ? 1u : 0u);
    }
    out[magnitudes] = 2 * out[magnitudes - 1];
    return out;
  }();

  //! @brief The number of the level that a magnitude is rounded to. All arithmetic is on integers.
  //! @param magnitude  The magnitude over the group's scale, at most 1, in units of 1 / block_one.
  //! @param threshold  Beyond which part of the distance between two levels the magnitude is rounded up, in 512ths: a
  //!                   random odd number, or 256.
  //! @param marks      `mark`, or a copy of it.
  [[nodiscard]] TERSUM_INLINE static std::uint32_t round(std::uint32_t magnitude,
                                                         std::uint32_t threshold,
                                                         std::uint32_t const* marks) noexcept
  {
    if constexpr (Levels::uniform) {
      std::uint32_t const fine = magnitude * (magnitudes - 1);
      return fine / detail::block_one +
             (fine % detail::block_one > threshold * (detail::block_one / 512) ? 1u : 0u);
    } else {
      std::uint32_t number = 0;
      TERSUM_UNROLL
      for (std::uint32_t step = magnitudes / 2; step > 0; step /= 2) {
        number += magnitude >= marks[number + step] ? step : 0u;
      }
      std::uint32_t const from = marks[number];
      return number + ((magnitude - from) * 512 > (marks[number + 1] - from) * threshold ? 1u : 0u);
    }
  }
};

static_assert(group_quantizer<group_absmax<4, 16>>, "tersum: must model tersum::group_quantizer");

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/block_group_absmax.hpp>
#include <tersum_baselines/detail/cpu_group_absmax.hpp>
