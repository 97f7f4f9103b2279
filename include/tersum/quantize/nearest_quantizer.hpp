// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rounding of one value to the nearest point of the symmetric grid of q bits. Biased; the least error for one rank.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

//! @brief Rounds to the nearest code, ties to even. A value beyond the grid gets the last code, NaN one of both ends.
//! @tparam Bits  Width of the grid, 2 to 8: codes lie in +-(2^(Bits-1) - 1).
template <int Bits>
struct nearest_quantizer {
  static_assert(Bits >= 2 && Bits <= 8, "tersum: nearest_quantizer<Bits> needs 2 <= Bits <= 8");
  constexpr description describe() const { return {"nearest_quantizer", Bits}; }

  using dither = no_dither;
  template <int Other>
  using with_bits = nearest_quantizer<Other>;  //!< The same on another grid.

  static constexpr int bits          = Bits;                   //!< Width of the grid.
  static constexpr int max_level     = (1 << (Bits - 1)) - 1;  //!< Codes lie in +-max_level.
  static constexpr int fraction_bits = 0;
  static constexpr bool unbiased     = false;

  using grid = uniform_grid<max_level, fraction_bits>;  //!< To which `encode` rounds.

  //! @brief The code of a value. `scale` is one over the step; no random bits are used.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE integers_of<Value> encode(Value const& value,
                                                        float scale,
                                                        words_of<Value> const&) const noexcept
  {
    return grid::round(value, scale, 0u);
  }
};

static_assert(quantizer<nearest_quantizer<4>>, "tersum: must model tersum::quantizer");

}  // namespace tersum::inline v0
