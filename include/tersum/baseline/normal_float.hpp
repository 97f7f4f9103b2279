// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! NormalFloat: levels that are quantiles of the normal distribution, as a codebook of rotated chunks and as levels of
//! groups.

#pragma once

#include <tersum/baseline/detail/normal_float_levels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <array>
#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @brief Where the last level of 2, 3 ... 8 bits has the least error of normal values, in root mean squares.
inline constexpr std::array normal_float_largest{
  1.381f, 2.165f, 2.863f, 3.508f, 4.061f, 4.536f, 4.957f};

template <int Bits>
struct normal_float_table {
  float value[1u << Bits];
};

//! @brief Levels in root mean squares.
template <int Bits>
inline constexpr normal_float_table<Bits> normal_float_in_rms = [] {
  normal_float_table<Bits> out{};
  for (unsigned i = 0; i < 1u << Bits; ++i) {
    out.value[i] = normal_float_largest[Bits - 2] * normal_float_levels[(1u << Bits) - 4 + i];
  }
  return out;
}();

//! @brief Where their cells end, midway between levels; the last is not used.
template <int Bits>
inline constexpr normal_float_table<Bits> normal_float_ends = [] {
  normal_float_table<Bits> out = normal_float_in_rms<Bits>;
  for (unsigned i = 0; i + 1 < 1u << Bits; ++i) {
    out.value[i] = 0.5f * (out.value[i] + out.value[i + 1]);
  }
  return out;
}();

}  // namespace detail

//! @brief The codebook NF<Bits>: of normal values each level is taken about equally often, and zero is one of them.
//!
//! Codes number the levels in ascending order. There is one level more above zero than below, so the codebook is not
//! symmetric; vectors find codes by `ends`. `two_shot_codec`, `gathered_codec` and `sharded_codec` take it for rotated
//! chunks, with a scale for each chunk as that of `lloyd_max`. In the paper the largest magnitude of a block of 64
//! has the last level; a rotated chunk has no block, so here the last level is where the error of normal values is least,
//! at `largest` root mean squares. Frequent levels are not the levels of least error: `lloyd_max` has them.
//! Source: Dettmers et al., QLoRA: Efficient Finetuning of Quantized LLMs (NeurIPS'23), section 3.
//! @tparam Bits  Width of a code, 2 to 8.
template <int Bits>
struct normal_float {
  static_assert(Bits >= 2 && Bits <= 8, "tersum: normal_float<Bits> needs 2 <= Bits <= 8");

  static constexpr int bits      = Bits;  //!< Width of a code.
  static constexpr bool unbiased = true;

  //! Root mean squares from zero to the last level.
  static constexpr float largest = detail::normal_float_largest[Bits - 2];

  //! @name Tables
  //! @{
  //! The levels of all codes, ascending, in root mean squares.
  [[nodiscard]] static constexpr float const* levels() noexcept
  {
    return detail::normal_float_in_rms<Bits>.value;
  }
  //! Where their cells end, 2^Bits - 1 ends: midway to the next level, to which such a value belongs.
  [[nodiscard]] static constexpr float const* ends() noexcept
  {
    return detail::normal_float_ends<Bits>.value;
  }
  //! @}

  //! @brief The code of one value, in root mean squares: that of the nearest level.
  [[nodiscard]] TERSUM_HOST_DEVICE std::uint32_t encode(float value) const noexcept
  {
    static constexpr detail::normal_float_table<Bits> ends = detail::normal_float_ends<Bits>;
    std::uint32_t number                                   = 0;
    TERSUM_UNROLL
    for (std::uint32_t step = 1u << (Bits - 1); step > 0; step /= 2) {
      number += value >= ends.value[number + step - 1] ? step : 0u;
    }
    return number;
  }

  //! @brief The level of a code, in root mean squares.
  [[nodiscard]] TERSUM_HOST_DEVICE float decode(std::uint32_t code) const noexcept
  {
    static constexpr detail::normal_float_table<Bits> levels = detail::normal_float_in_rms<Bits>;
    return levels.value[code & ((1u << Bits) - 1)];
  }

  //! @brief The mean squared error of one vector's unbiased estimate over its energy, if its values are normal.
  [[nodiscard]] static constexpr float distortion() noexcept
  {
    constexpr std::array errors{.171425807f,
                                .0384441906f,
                                .00999829276f,
                                .00258048231f,
                                .00065516972f,
                                .000164969217f,
                                .0000413820279f};
    return errors[Bits - 2];
  }
};

static_assert(codebook<normal_float<4>> && has_ends<normal_float<4>>,
              "tersum: must model tersum::codebook");

//! @brief Levels of `group_absmax`: NF<bits>'s levels below zero, and the same above it.
//!
//! Codes of groups have a sign and a magnitude, so their levels are symmetric: of the 16 levels of NF4 one half is mirrored and
//! there are 15, zero twice. With groups of 64 and `no_dither` this is the blockwise form of the paper in all else.
struct normal_levels {
  static constexpr bool uniform = false;

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    // 2^b - 4 is where the levels begin, and their number 2^(b-1) - 1 is zero.
    return -detail::normal_float_levels[2 * (last + 1) - 4 + last - i];
  }
};

}  // namespace tersum::inline v0
