// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer and a codec that tersum has never heard of.

#pragma once

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstdint>

//! Keeps the sign with probability |value| / step; beyond a step always.
struct ternary_quantizer {
  using dither                       = tersum::independent;
  static constexpr int bits          = 2;
  static constexpr int max_level     = 1;
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;
  constexpr tersum::description describe() const { return {"ternary_quantizer"}; }

  TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                         float scale,
                                         std::uint32_t random) const noexcept
  {
    float const probability = ::rintf(::fabsf(value) * scale);  // in units of 1/256
    if (!(static_cast<float>(random) < probability)) { return 0; }
    return value < 0.0f ? -1 : 1;
  }
};

using my_codec = tersum::codec<tersum::fixed_chunks<256>,
                               tersum::no_rotation,
                               tersum::summed_codes<tersum::rms_range<tersum::tracked_correlation>,
                                                    ternary_quantizer,
                                                    tersum::saturating_sum<4>>,
                               tersum::in_wire>;
