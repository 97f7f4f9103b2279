// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The one rounding that every uniform quantizer shares, in a form that CPU and GPU compute alike bit for bit.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief Rounds value * scale / 2^FractionBits up or down to an integer in -Limit .. Limit: down if the fraction plus
//! `random` / 2^FractionBits is less than one, where `random` is below 2^FractionBits.
//!
//! One fused multiply-add with 1.5 2^23 leaves round-to-nearest-even(value * scale) in the low bits of the float; the
//! rest is integers, so no compiler can contract it into something else.
template <int Limit, int FractionBits>
[[nodiscard]] TERSUM_HOST_DEVICE inline std::int32_t round_to_grid(float value,
                                                                   float scale,
                                                                   std::uint32_t random) noexcept
{
  constexpr std::int32_t magic_bits = 0x4b400000;  // 1.5 * 2^23
  constexpr std::int32_t unit       = 1 << FractionBits;
  float const shifted               = ::fmaf(value, scale, 12582912.0f);
  // A shifted value that is negative or NaN gives the lowest code. A float above 2^24 has larger bits and gives the highest.
  float const bounded    = shifted > 0.0f ? shifted : 0.0f;
  std::int32_t const sum = static_cast<std::int32_t>(detail::float_bits(bounded)) +
                           (static_cast<std::int32_t>(random) - magic_bits + Limit * unit);
  std::int32_t const high = 2 * Limit * unit + unit - 1;
  return (detail::maximum(detail::minimum(sum, high), 0) >> FractionBits) - Limit;
}

}  // namespace tersum::inline v0
