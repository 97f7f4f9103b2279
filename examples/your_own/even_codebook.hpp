// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codebook: four sizes at equal distances and a sign, in root mean squares of the chunk.

#pragma once

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstdint>

struct even_codebook {
  static constexpr int bits      = 3;  // of a code: the sign, and which of four sizes
  static constexpr bool unbiased = true;
  constexpr tersum::description describe() const { return {"even_codebook"}; }

  TERSUM_HOST_DEVICE std::uint32_t encode(float value) const
  {
    float const size = std::fabs(value);
    std::uint32_t const step =
      (size >= .6f ? 1u : 0u) + (size >= 1.2f ? 1u : 0u) + (size >= 1.8f ? 1u : 0u);
    return step + (value < 0 ? 4u : 0u);
  }

  TERSUM_HOST_DEVICE float decode(std::uint32_t code) const
  {
    float const size = std::fma(static_cast<float>(code % 4), .6f, .3f);
    return code < 4 ? size : -size;
  }
};
static_assert(tersum::codebook<even_codebook>);
