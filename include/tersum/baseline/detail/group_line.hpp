// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codes of a group with two ends as values on a line, in the same arithmetic on the CPU and in kernels.

#pragma once

#include <tersum/baseline/detail/group_units.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Two ends in units of the gradient, and what a value's place between them is multiplied by.
struct group_line {
  float begin;    //!< What code 0 stands for.
  float step;     //!< From a code to the next.
  float inverse;  //!< 256 over the step, or zero.
};

//! @brief The line between the ends that a group's word says, times the chunk's scale.
template <class Quantizer, class Arithmetic>
[[nodiscard]] TERSUM_INLINE group_line line_of(Arithmetic const&, std::uint32_t ends, float whole)
{
  float const low    = bits_float(ends << 16);
  float const high   = bits_float(ends & 0xffff0000u);
  float const length = Arithmetic::multiply(Arithmetic::subtract(high, low), whole);
  float const steps  = static_cast<float>(Quantizer::last);
  return {Arithmetic::multiply(low, whole),
          Arithmetic::divide(length, steps),
          length >= least_block ? Arithmetic::divide(256.0f * steps, length) : 0.0f};
}

//! @brief A value's place between the ends, in units of 1/256 of a step: 0 to 256 times the last code.
template <class Quantizer, class Arithmetic>
[[nodiscard]] TERSUM_INLINE std::int32_t place_between(Arithmetic const&,
                                                       group_line const& line,
                                                       float value)
{
  float const above = Arithmetic::subtract(value, line.begin);
  float const place = Arithmetic::fma(above, line.inverse, 0.5f);
  // Means are no ends, so that values may lie far beyond them. Infinity times zero gets the first code.
  return static_cast<std::int32_t>(minimum(maximum(0.0f, place), 256.0f * Quantizer::last));
}

template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE float value_on(Arithmetic const&,
                                           group_line const& line,
                                           std::uint32_t code)
{
  return Arithmetic::fma(static_cast<float>(code), line.step, line.begin);
}

//! @brief The word of a group's ends, counted from the chunk's codes. `thread` has its first coordinates.
template <class Quantizer>
[[nodiscard]] TERSUM_INLINE unsigned ends_word(int size, unsigned thread, unsigned quarter) noexcept
{
  return static_cast<unsigned>(size / 32 * Quantizer::bits) + thread / (Quantizer::block / 8) * 4 +
         quarter;
}

}  // namespace tersum::inline v0::detail
