// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Unbiased rounding of one value onto the symmetric grid of q bits.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

//! @brief Rounds up or down at random: the expected code is the value in units of the step.
//!
//! The value is rounded to 1/256 of a step, ties to even, and dithered with eight random bits. So the expectation is
//! exact on that finer grid, and that of -x is that of x, negated: no bias collects at the first coordinate of a rotated
//! chunk. A value beyond the grid gets the last code, NaN one of both ends.
//!
//! @par Example
//! @snippet tests/quantize/uniform_grid.test.cpp encode-one
//!
//! @tparam Bits    Width of the grid, 2 to 8: codes lie in +-(2^(Bits-1) - 1).
//! @tparam Dither  `independent` or `stratified`.
template <int Bits, dither_source Dither = stratified>
struct stochastic_quantizer {
  static_assert(Bits >= 2 && Bits <= 8, "tersum: stochastic_quantizer<Bits> needs 2 <= Bits <= 8");
  constexpr description describe() const { return {"stochastic_quantizer", Bits, Dither{}}; }

  using dither = Dither;  //!< Source of the random bytes.
  template <int Other>
  using with_bits           = stochastic_quantizer<Other, Dither>;  //!< The same on another grid.
  static constexpr int bits = Bits;                                 //!< Width of the grid.
  static constexpr int max_level     = (1 << (Bits - 1)) - 1;       //!< Codes lie in +-max_level.
  static constexpr int fraction_bits = 8;  //!< Bits of a step that the dither resolves.
  static constexpr bool unbiased     = true;

  using grid = uniform_grid<max_level, fraction_bits>;  //!< To which `encode` rounds.

  //! @brief The code of a value.
  //! @param value   What is rounded.
  //! @param scale   2^fraction_bits over the step.
  //! @param random  Eight random bits, 0 to 255.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE integers_of<Value> encode(
    Value const& value, float scale, words_of<Value> const& random) const noexcept
  {
    return grid::round(value, scale, random);
  }
};

static_assert(quantizer<stochastic_quantizer<4>>, "tersum: must model tersum::quantizer");

}  // namespace tersum::inline v0
