// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer: the sign of a coordinate, and nothing of its size.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>

struct sign_quantizer {
  using dither              = tersum::independent;  // without use for it: a sign is no nearest code
  static constexpr int bits = 2;
  static constexpr int max_level     = 1;
  static constexpr int fraction_bits = 0;
  static constexpr bool unbiased     = false;
  constexpr tersum::description describe() const { return {"sign_quantizer"}; }

  TERSUM_HOST_DEVICE std::int32_t encode(float value, float scale, std::uint32_t) const
  {
    float const position = value * scale;  // in steps
    return (position > 0x1p-20f ? 1 : 0) - (position < -0x1p-20f ? 1 : 0);
  }
};
static_assert(tersum::quantizer<sign_quantizer>);
