// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The scalar quantizer of least error for normal values, for schedules that decode before they add.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/cell_lines.hpp>
#include <tersum/quantize/detail/codebook_cells.hpp>
#include <tersum/quantize/detail/lloyd_max_levels.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

namespace detail {

// clang-format off
//! @brief The lines of 2, 3 and 4 bits, with which the beginnings of places are nearest to the middles between levels: the mean
//! squared error is at most .54 % above the least.
template <int Bits> struct lloyd_max_line {};
template <> struct lloyd_max_line<2> { static constexpr float slope = .42578125f, offset = .26953125f; };
template <> struct lloyd_max_line<3> { static constexpr float slope = .3125f, offset = .296875f; };
template <> struct lloyd_max_line<4> { static constexpr float slope = .2939453125f, offset = .267578125f; };
// clang-format on

//! @brief Where the cells end, in root mean squares: midway between levels, or next to that where a place begins. The last has no end.
template <int Bits>
inline constexpr auto lloyd_max_boundaries = [] {
  constexpr unsigned count = 1u << (Bits - 1);
  std::array<float, count> ends{};
  for (unsigned i = 0; i < count; ++i) {
    float const* const level = lloyd_max_levels + (count - 1 + i);
    bool const last          = i + 1 == count;
    ends[i] = last ? std::numeric_limits<float>::infinity() : 0.5f * (level[0] + level[1]);
    if constexpr (has_places<lloyd_max_line<Bits>>) {
      if (!last) { ends[i] = cell_places<lloyd_max_line<Bits>>::least(ends[i]); }
    }
  }
  return ends;
}();

}  // namespace detail

//! @brief Rounds a value in root mean squares of its chunk to the nearest level of the Gaussian codebook of `Bits` bits; with 2, 3 or 4
//! bits to one of the two nearest, which no comparison has to find: see `detail::cell_places`.
//!
//! A code is the number of the level's magnitude, with the sign in its highest bit. Multiplied by the root mean square, the
//! levels would be too close to zero for an unbiased estimate. Encoders therefore give the chunk x a scale with which the
//! projection of the estimate onto x is x, |x|^2 / <x, levels> (EDEN). Over random rotations the estimate is then unbiased, and
//! its error is `distortion()` of the energy. Codes of different ranks cannot be added, because each rank's chunk has a scale
//! of its own. Source: Vargaftik et al., EDEN: Communication-Efficient and Robust Distributed Mean Estimation (ICML'22).
//! @tparam Bits  Width of a code, 1 to 16.
template <int Bits>
struct lloyd_max : detail::lloyd_max_line<Bits> {
  static_assert(Bits >= 1 && Bits <= 8, "tersum: lloyd_max<Bits> needs 1 <= Bits <= 16");
  constexpr description describe() const
  {
    float const* const table = detail::has_places<lloyd_max> ? boundaries() : levels();
    return {"lloyd_max", Bits, std::span<float const>{table, magnitudes}};
  }

  template <int Other>
  using with_bits                 = lloyd_max<Other>;  //!< The same with other codes.
  static constexpr int bits       = Bits;              //!< Width of a code.
  static constexpr int magnitudes = 1 << (Bits - 1);   //!< Levels of one sign.
  static constexpr bool unbiased  = true;

  //! @name Tables of `magnitudes` entries
  //! @{
  //! Positive levels, ascending.
  [[nodiscard]] static constexpr float const* levels() noexcept
  {
    return detail::lloyd_max_levels + (magnitudes - 1);
  }
  //! For each level the least magnitude that is rounded to a higher one; infinity for the last level.
  [[nodiscard]] static constexpr float const* boundaries() noexcept
  {
    return detail::lloyd_max_boundaries<Bits>.data();
  }
  //! @}

  using cells      = detail::table_cells<lloyd_max>;
  using byte_lines = detail::cell_lines<lloyd_max>;

  //! @brief The code of a value, in root mean squares. In a kernel each boundary is a comparison with a constant.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE constexpr words_of<Value> encode(Value const& value) const noexcept
  {
    return detail::encode_signed<cells, Bits>(value);
  }

  //! @brief The level of a code. In a kernel it is chosen among constants.
  [[nodiscard]] TERSUM_INLINE constexpr float decode(std::uint32_t code) const noexcept
  {
    return detail::decode_signed<cells, Bits>(code);
  }

  //! @brief The mean squared error of one vector's unbiased estimate over its energy: D / (1 - D), where D is that of
  //! rounding to the levels alone.
  [[nodiscard]] static constexpr float distortion() noexcept
  {
    constexpr float errors[] = {.570796327f,
                                .133121169f,
                                .035784584f,
                                .0096434753f,
                                .00251095747f,
                                .000644654978f,
                                .00016350496f,
                                .0000411867791f};
    return errors[Bits - 1];
  }
};

//! @brief Codes of more than 8 bits, whose levels need no table: see `level_lines`.
template <int Bits>
requires(Bits > 8 && Bits <= 16) struct lloyd_max<Bits> {
  template <int Other>
  using with_bits                = lloyd_max<Other>;
  using cells                    = detail::level_lines<Bits>;
  static constexpr int bits      = Bits;
  static constexpr bool unbiased = true;
  constexpr description describe() const { return {"lloyd_max", Bits, cells{}}; }

  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE words_of<Value> encode(Value const& value) const noexcept
  {
    return detail::encode_signed<cells, Bits>(value);
  }
  [[nodiscard]] TERSUM_INLINE float decode(std::uint32_t code) const noexcept
  {
    return detail::decode_signed<cells, Bits>(code);
  }
  [[nodiscard]] static constexpr float distortion() noexcept { return cells::distortion(); }
};

static_assert(codebook<lloyd_max<4>>, "tersum: must model tersum::codebook");
static_assert(codebook<lloyd_max<12>>, "tersum: must model tersum::codebook");

}  // namespace tersum::inline v0
