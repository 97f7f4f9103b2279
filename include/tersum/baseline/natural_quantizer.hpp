// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes that are zero or powers of two, which an exact sum adds: exponential dithering with a shared range.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/uniform_grid.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief Rounds up or down, at random, to zero or a power of two: the codes are 0, +-1, +-2, +-4 up to +-2^(Levels - 1).
//!
//! Levels are 2^-k of the range, which the ranks agree on, and the variance of a value above the least of them is an eighth of its
//! square at most. Codes are integers that add up exactly, so 8 bits (`widening_sum<Levels + 1, 8>`) hold the sums of 127 / 2^(Levels - 1)
//! ranks. The source sends exponents instead, whose sums every hop rounds again. The value is rounded to 1/256 of a step, and its
//! place between two levels to 1/256, so that the expectation of -x is that of x, negated; NaN becomes zero. Source: exponential
//! dithering of Xin et al., Global-QSGD (2023), after Horvath et al., Natural Compression (2019).
//! @tparam Levels  Levels of one sign beside zero, 2 to 7.
//! @tparam Dither  `independent` or `stratified`.
template <int Levels, dither_source Dither = independent>
struct natural_quantizer {
  static_assert(Levels >= 2 && Levels <= 7,
                "tersum: natural_quantizer<Levels> needs 2 <= Levels <= 7");
  static_assert(Dither::rounds > 0, "tersum: natural_quantizer rounds at random: not no_dither");

  using dither                       = Dither;             //!< Source of the random bytes.
  static constexpr int bits          = Levels + 1;         //!< Width of a code, its sign included.
  static constexpr int max_level     = 1 << (Levels - 1);  //!< Codes lie in +-max_level.
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;

  //! Magnitudes of codes: 0, 1, 2, 4 up to max_level.
  static constexpr auto rounds_to = [] {
    std::array<std::int32_t, detail::extent(Levels + 1)> magnitudes{};
    for (int level = 0; level < Levels; ++level) {
      magnitudes[static_cast<std::size_t>(level) + 1] = 1 << level;
    }
    return magnitudes;
  }();

  //! @brief The code of one value. `scale` is 256 over the step, which is the range over max_level; `random` a byte.
  [[nodiscard]] TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                                       float scale,
                                                       std::uint32_t random) const noexcept
  {
    std::uint32_t const bits_of_value = detail::float_bits(value);
    // The magnitude is rounded, not the value, so that x and -x have opposite expectations also at ties.
    float const magnitude = detail::bits_float(bits_of_value & 0x7fffffffu);
    std::int32_t const fine =
      detail::maximum(round_to_grid<256 * max_level, 0>(magnitude, scale, 0), 0);
    std::int32_t low = 0, gap = 1;
    TERSUM_UNROLL
    for (int level = 1; level < max_level; level *= 2) {
      bool const above = fine >= 256 * level;
      low              = above ? level : low;
      gap              = above ? level : gap;
    }
    bool const up = static_cast<std::int32_t>(2 * random + 1) * gap < 2 * fine - 512 * low;
    std::int32_t const code = low + (up ? gap : 0);
    return bits_of_value >> 31 != 0 ? -code : code;
  }
};

static_assert(quantizer<natural_quantizer<4>>, "tersum: must model tersum::quantizer");

}  // namespace tersum::inline v0
