// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Quantizers that a user of the library may write, of one value at a time: they do not say how vectors do several.

#pragma once

#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::tests {

//! Rounds at random to 0, 1, 2, 4 and 7 steps.
struct uneven_quantizer {
  using dither                       = stratified;
  static constexpr int bits          = 4;
  static constexpr int max_level     = 7;
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;
  constexpr description describe() const { return {"uneven_quantizer"}; }

  [[nodiscard]] TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                                       float scale,
                                                       std::uint32_t random) const noexcept
  {
    bool const negative     = value < 0;
    std::int32_t const fine = round_to_grid<256 * 7, 0>(negative ? -value : value, scale, 0);
    std::int32_t const size = fine > 0 ? fine : 0;
    std::int32_t const low  = size >= 1024 ? 4 : size >= 512 ? 2 : size >= 256 ? 1 : 0;
    std::int32_t const gap  = size >= 1024 ? 3 : size >= 512 ? 2 : 1;
    bool const up = static_cast<std::int32_t>(2 * random + 1) * gap < 2 * size - 512 * low;
    std::int32_t const code = low + (up ? gap : 0);
    return negative ? -code : code;
  }
};

//! Powers of two and zero, with four random bits; its parameter is known at run time only.
struct powers {
  using dither                       = stratified;
  static constexpr int bits          = 4;
  static constexpr int max_level     = 4;
  static constexpr int fraction_bits = 4;
  static constexpr bool unbiased     = false;
  constexpr description describe() const { return {"powers", threshold}; }

  float threshold = 0.5F;

  [[nodiscard]] std::int32_t encode(float value, float scale, std::uint32_t random) const noexcept
  {
    float const size = std::fabs(value) * scale + static_cast<float>(random >> 4);
    int const code   = size >= 56.0F ? 4 : size >= 32.0F ? 2 : size >= 16.0F + threshold ? 1 : 0;
    return value < 0.0F ? -code : code;
  }
};

}  // namespace tersum::tests
