// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer: codes of a uniform grid, as their sum must be the code of the sum, but zero for what is below half a step.

#pragma once

#include <tersum/tersum.hpp>

template <int Bits>
struct dead_zone_quantizer {
  using dither              = tersum::stratified;  // the source of `random`
  static constexpr int bits = Bits;                // what a reducer's lanes must hold
  constexpr tersum::description describe() const { return {"dead_zone_quantizer", Bits}; }
  static constexpr int max_level     = (1 << (Bits - 1)) - 1;  // codes lie in +-max_level
  static constexpr int fraction_bits = 8;                      // `scale` is 2^8 / step
  static constexpr bool unbiased     = false;

  // A function of values (tersum/value.hpp): of a float in kernels, of vectors on a CPU.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE tersum::integers_of<Value> encode(
    Value const& value, float scale, tersum::words_of<Value> const& random) const noexcept
  {
    using tersum::
      select;  // that of vectors is found by its arguments, as are all functions of them
    auto const code = tersum::round_to_grid<max_level, fraction_bits>(value, scale, random);
    auto const sent = tersum::magnitude_of(value) * scale >= 128.0f;
    return select(sent, code, 0);
  }
};
static_assert(tersum::quantizer<dead_zone_quantizer<4>>);
