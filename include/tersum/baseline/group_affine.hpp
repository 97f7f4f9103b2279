// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of groups of coordinates between two values that travel with them, for codecs that decode before they add.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @brief The bits of the bfloat16 next to x that is not nearer to zero. |x| is at most 1.
[[nodiscard]] TERSUM_INLINE std::uint32_t bfloat16_away(float x) noexcept
{
  return (float_bits(x) + 0xffffu) >> 16;
}

//! @brief The same, not farther from zero.
[[nodiscard]] TERSUM_INLINE std::uint32_t bfloat16_towards(float x) noexcept
{
  return float_bits(x) >> 16;
}

//! @brief The nearest, ties to even.
[[nodiscard]] TERSUM_INLINE std::uint32_t bfloat16_near(float x) noexcept
{
  std::uint32_t const bits = float_bits(x);
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

}  // namespace detail

//! @name Quantizers of groups with two values each
//! The chunk's largest magnitude M travels as a float, and two bfloat16 in a word for each group: its values for the first and the last
//! code, over M. Codes stand for values at equal distances between them. There is no rotation.
//! A quantizer says what is gathered of a group (`fields` floats, from `first` of each value on, by `join` in a tree), which two
//! values that makes (`ends`), and which code a value gets (`code`, of its place between the ends in units of 1/256 of a
//! distance, and of a random byte).
//! @{

//! @brief Affine codes from the least to the largest value of a group, rounded outwards to bfloat16, so that no value is cut off.
//!
//! A group whose values have one sign, or one far from zero, uses all codes, of which `group_absmax` leaves half unused; others lose
//! nothing by it but the 2^-7 of the ends. Rounding at random is unbiased to 1/256 of a distance.
//! @tparam Bits    Width of a code, 1 to 8.
//! @tparam Block   Coordinates of a group, 16 to 128; a chunk has 4 of them or a multiple.
//! @tparam Dither  `independent`, `stratified` or `no_dither`.
template <int Bits, int Block, dither_source Dither = independent>
struct group_minmax {
  static_assert(Bits >= 1 && Bits <= 8, "tersum: group_minmax<Bits, Block> needs 1 <= Bits <= 8");
  static_assert(Block == 16 || Block == 32 || Block == 64 || Block == 128,
                "tersum: group_minmax<Bits, Block> has blocks of 16, 32, 64 or 128");

  using dither                   = Dither;
  static constexpr int bits      = Bits;   //!< Width of a code.
  static constexpr int block     = Block;  //!< Coordinates with two ends.
  static constexpr bool unbiased = Dither::rounds > 0;
  static constexpr int fields    = 2;                //!< The least and the largest value.
  static constexpr int last      = (1 << Bits) - 1;  //!< The largest code.

  TERSUM_INLINE static void first(float value, float (&field)[detail::extent(fields)]) noexcept
  {
    field[0] = value;
    field[1] = value;
  }
  template <class Arithmetic>
  TERSUM_INLINE static void join(Arithmetic const&,
                                 float const (&other)[fields],
                                 float (&field)[detail::extent(fields)]) noexcept
  {
    field[0] = other[0] < field[0] ? other[0] : field[0];
    field[1] = other[1] > field[1] ? other[1] : field[1];
  }
  //! The two bfloat16 of what was gathered, the first in the low half. `whole` is the chunk's largest magnitude.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_INLINE static std::uint32_t ends(Arithmetic const&,
                                                        float const (&field)[fields],
                                                        float whole) noexcept
  {
    float const low  = Arithmetic::divide(field[0], whole),
                high = Arithmetic::divide(field[1], whole);
    return (low < 0 ? detail::bfloat16_away(low) : detail::bfloat16_towards(low)) |
           (high > 0 ? detail::bfloat16_away(high) : detail::bfloat16_towards(high)) << 16;
  }
  [[nodiscard]] TERSUM_INLINE static std::uint32_t code(float,
                                                        std::int32_t fine,
                                                        std::uint32_t byte) noexcept
  {
    std::int32_t const inside = detail::minimum(detail::maximum(fine, 0), 256 * last);
    std::uint32_t const up    = Dither::rounds > 0 ? byte : 128u;
    return detail::minimum((static_cast<std::uint32_t>(inside) + up) >> 8,
                           static_cast<std::uint32_t>(last));
  }
};

//! @brief Signs, of which the values from zero on get their mean, and those below it theirs: 1-bit SGD, which needs `error_feedback`.
//!
//! Means are rounded to the nearest bfloat16; that of no values is zero. In the source a group is a column of a matrix. Source: Seide
//! et al., 1-Bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed Training of Speech DNNs
//! (Interspeech'14).
//! @tparam Block  Coordinates of a group, 16 to 128; a chunk has 4 of them or a multiple.
template <int Block>
struct group_two_means {
  static_assert(Block == 16 || Block == 32 || Block == 64 || Block == 128,
                "tersum: group_two_means<Block> has blocks of 16, 32, 64 or 128");

  using dither                   = no_dither;
  static constexpr int bits      = 1;      //!< Width of a code.
  static constexpr int block     = Block;  //!< Coordinates with two means.
  static constexpr bool unbiased = false;
  static constexpr int fields    = 4;  //!< The sums of both signs, and how many there are of each.
  static constexpr int last      = 1;  //!< The larger code.

  TERSUM_INLINE static void first(float value, float (&field)[detail::extent(fields)]) noexcept
  {
    bool const below = value < 0;
    field[0]         = below ? value : 0.0f;
    field[1]         = below ? 0.0f : value;
    field[2]         = below ? 1.0f : 0.0f;
    field[3]         = below ? 0.0f : 1.0f;
  }
  template <class Arithmetic>
  TERSUM_INLINE static void join(Arithmetic const&,
                                 float const (&other)[fields],
                                 float (&field)[detail::extent(fields)]) noexcept
  {
    TERSUM_UNROLL
    for (int i = 0; i < fields; ++i) { field[i] = Arithmetic::add(field[i], other[i]); }
  }
  //! The two bfloat16 of what was gathered, the first in the low half. `whole` is the chunk's largest magnitude.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_INLINE static std::uint32_t ends(Arithmetic const&,
                                                        float const (&field)[fields],
                                                        float whole) noexcept
  {
    auto const mean = [&](float sum, float count) {
      return detail::bfloat16_near(
        Arithmetic::divide(Arithmetic::divide(sum, count > 0 ? count : 1.0f), whole));
    };
    return mean(field[0], field[2]) | mean(field[1], field[3]) << 16;
  }
  [[nodiscard]] TERSUM_INLINE static std::uint32_t code(float value,
                                                        std::int32_t,
                                                        std::uint32_t) noexcept
  {
    return value < 0 ? 0u : 1u;
  }
};
//! @}

static_assert(affine_quantizer<group_minmax<8, 128>>,
              "tersum: must model tersum::affine_quantizer");
static_assert(affine_quantizer<group_two_means<128>>,
              "tersum: must model tersum::affine_quantizer");

}  // namespace tersum::inline v0

#include <tersum/baseline/detail/group_affine.ipp>
