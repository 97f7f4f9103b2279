// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer that a user of the library writes: it models the role and obeys its laws.

#include "conformance/quantizer_conformance.hpp"

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/dither.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace {

// Keeps the sign with probability |value| / step, as TernGrad does; beyond a step always.
struct ternary_quantizer {
  using dither                       = tersum::independent;
  static constexpr int bits          = 2;
  static constexpr int max_level     = 1;
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;

  [[nodiscard]] TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                                       float scale,
                                                       std::uint32_t random) const noexcept
  {
    float const probability = ::rintf(::fabsf(value) * scale);  // in units of 1/256
    if (!(static_cast<float>(random) < probability)) { return 0; }
    return value < 0.0f ? -1 : 1;
  }
};

static_assert(tersum::quantizer<ternary_quantizer>);

TEST_CASE("[conformance] a ternary quantizer of one's own obeys the laws of the role")
{
  tersum::tests::check_quantizer_laws<ternary_quantizer>();
}

}  // namespace
