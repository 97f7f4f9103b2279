// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Levels of `group_absmax` that are small floats, found by rounding a float instead of a search among them.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum_baselines/detail/group_units.hpp>
#include <tersum_baselines/detail/mark_tree.hpp>

#include <array>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief How a magnitude over its group's scale becomes the number of the nearest level.
//!
//! A multiple of the magnitude, as an integer, has levels that are multiples of a power of two. Marks are levels in whole steps of
//! 1 / block_one, so that values are rounded up a little beyond the middle of two levels: by an offset, which may depend on the
//! multiple's exponent and never lies on an integer. `serves` says whether there are such offsets, by all of `mark_tree::ups`.
template <class Quantizer>
struct float_rounding {
  using levels = typename Quantizer::levels_type;
  using tree   = mark_tree<Quantizer>;

  static constexpr int fraction = levels::fraction_bits;

  //! The odd part of the largest level's significand: what magnitudes are multiplied by.
  static constexpr int factor = [] {
    int odd = (levels::last & ((1 << fraction) - 1)) + (1 << fraction);
    while (odd % 2 == 0) { odd /= 2; }
    return odd;
  }();

  //! @brief A level as such a multiple.
  [[nodiscard]] static constexpr float multiple(int i) noexcept
  {
    constexpr float unit = factor * static_cast<float>(block_one) / levels::largest();
    return levels::magnitude(static_cast<std::uint32_t>(i)) * unit;
  }

  static constexpr float least  = multiple(1);              //!< The distance of levels below
  static constexpr float normal = multiple(1 << fraction);  //!< this one,
  static constexpr int exponents =
    levels::last >> fraction;  //!< and how many powers of two there are from it on.

  //! What the offset must be above, and the most that it may be.
  struct bounds {
    double above = 0, most = 1e9;
  };

  //! @brief Of the levels of the power of two of this number, or of all. The first has the levels below `normal`, too.
  [[nodiscard]] static constexpr bounds bounds_of(int begin, int end) noexcept
  {
    bounds out;
    for (int i = begin > 0 ? (begin + 1) << fraction : 0;
         i < (end + 1) << fraction && i < levels::last;
         ++i) {
      double const middle =
        (static_cast<double>(multiple(i)) + static_cast<double>(multiple(i + 1))) / 2;
      double const up = static_cast<double>(tree::ups[static_cast<std::size_t>(i)]) * factor;
      out.above       = maximum(out.above, up - factor - middle);
      out.most        = minimum(out.most, up - middle);
    }
    return out;
  }

  [[nodiscard]] static constexpr bool serves_all(bounds const& of) noexcept
  {
    // Multiples less half of one are floats. A quarter of a distance stays within the power of two.
    return of.above + 0.5 <= of.most && 4 * (of.above + 0.5) <= static_cast<double>(least);
  }

  //! Whether all powers of two have one offset.
  static constexpr bool same = serves_all(bounds_of(0, exponents));

  static constexpr bool serves = [] {
    bool all = tree::counts_ups && exponents <= 16 && factor * block_one <= 1u << 23;
    for (int e = 0; e < exponents; ++e) { all = all && serves_all(bounds_of(e, e + 1)); }
    return all;
  }();

  //! The offset of a multiple, by the last four bits of its exponent.
  static constexpr std::array<float, 16> offsets = [] {
    std::array<float, 16> out{};
    for (int e = 0; e < exponents; ++e) {
      bounds const of           = same ? bounds_of(0, exponents) : bounds_of(e, e + 1);
      std::uint32_t const place = (float_bits(normal) >> 23) + static_cast<std::uint32_t>(e);
      out[place % 16]           = static_cast<float>(of.above + 0.5);
    }
    return out;
  }();
};

//! @brief Whether a quantizer's codes are found so.
template <class Quantizer>
inline constexpr bool rounds_floats = false;

template <class Quantizer>
requires(Quantizer::levels_type::fraction_bits >
         0) inline constexpr bool rounds_floats<Quantizer> = float_rounding<Quantizer>::serves;

}  // namespace tersum::inline v0::detail
