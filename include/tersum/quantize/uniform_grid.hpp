// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The one rounding that every uniform quantizer shares, in a form that CPU and GPU compute alike bit for bit.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

//! @brief Rounds to a grid of integers in -Limit .. Limit whose steps are 2^FractionBits of its own units.
//!
//! One fused multiply-add with 1.5 2^23 leaves round-to-nearest-even(value * scale) in the low bits of the float; the
//! rest is integers, so no compiler can contract it into something else.
template <int Limit, int FractionBits>
struct uniform_grid {
  //! Bits of a float that stand for the lowest code. They have zeros where the code lies, so need not be subtracted.
  static constexpr std::uint32_t low = 0x4b400000;

  //! @brief value * scale / 2^FractionBits rounded up or down, from the lowest code on: down if the fraction plus `random` /
  //! 2^FractionBits is less than one, where `random` is below 2^FractionBits. Below that code lies the fraction, above it `low`.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static words_of<Value> field(Value const& value,
                                                           float scale,
                                                           words_of<Value> const& random) noexcept
  {
    constexpr int unit          = 1 << FractionBits;
    constexpr std::uint32_t odd = Limit * unit % 2;  // ties go to even codes
    auto const sum = to_integers(rounded_bits<Limit * unit + odd>(value, scale) + (random - odd));
    // A float above 2^24 has larger bits and gives the highest code, one below zero the lowest, NaN either.
    constexpr auto lowest = static_cast<std::int32_t>(low);
    return to_words(larger(smaller(sum, lowest + 2 * Limit * unit + unit - 1), lowest));
  }

  //! The code of that.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static integers_of<Value> round(
    Value const& value, float scale, words_of<Value> const& random) noexcept
  {
    return to_integers((field(value, scale, random) - low) >> FractionBits) - Limit;
  }
};

//! @brief The code of a value on a `uniform_grid`.
TERSUM_OF_VALUES
template <int Limit, int FractionBits, class Value>
[[nodiscard]] TERSUM_INLINE integers_of<Value> round_to_grid(Value const& value,
                                                             float scale,
                                                             words_of<Value> const& random) noexcept
{
  return uniform_grid<Limit, FractionBits>::round(value, scale, random);
}

}  // namespace tersum::inline v0
