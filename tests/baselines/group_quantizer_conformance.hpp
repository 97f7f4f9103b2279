// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of quantizers of groups with scales of their own, for those of the library and of its users.

#pragma once

#include "support/mismatches.hpp"

#include <tersum_baselines/group_quantizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief The laws of the scales of groups: codes have `bits` bits, and scales rise with what is encoded. Unless they
//! `saturate`, they are not below it, but for one rounding, and the next lower scale is; if they do, not below half of it from 2^-8 on.
template <class Scale>
void check_group_scale_laws()
{
  constexpr bool saturates = requires { requires Scale::saturates; };
  static_assert(Scale::bits == 8 || Scale::bits == 16);
  mismatches wide, falls, low, high;
  float last = 0;
  for (int i = 0; i <= 4096; ++i) {
    // From 2^-16 to 1, with powers of two among them.
    float const ratio        = i == 0 ? 0.0f : std::exp2(static_cast<float>(i - 4096) / 256);
    std::uint32_t const code = Scale::encode(ratio);
    float const scale        = Scale::decode(code);
    wide.expect(code >> Scale::bits, 0u, ratio, code);
    falls.expect(scale >= last, true, ratio, code);
    if (!saturates || i >= 2048) {
      float const least = saturates ? ratio / 2 : ratio * (1 - 0x1p-23f);
      low.expect(scale >= least && std::isfinite(scale), true, ratio, code);
      for (std::uint32_t const next : {code - 1, code + 1}) {
        float const other = Scale::decode(next);
        high.expect(saturates || i == 0 || other >= scale || other < ratio, true, ratio, code);
      }
    }
    last = scale;
  }
  CHECK(wide.report() == "");
  CHECK(falls.report() == "");
  CHECK(low.report() == "");
  CHECK(high.report() == "");
}

//! @brief Checks every law of the role.
//!
//! - Levels ascend from 0, and marks are levels in units of 2^-20; no magnitude reaches the last mark.
//! - With the middle threshold a magnitude loses half of the distance of two levels at most; zero is rounded to zero, and 1 to the
//!   largest level up to it. Numbers of levels do not fall where the magnitude rises.
//! - With a dither that draws, a magnitude is rounded to one of the two levels beside it, whose number does not rise with the
//!   threshold; and the mean over all thresholds is the magnitude, to half of 1/256 of the distance.
//! - Those of its scales.
template <group_quantizer Quantizer>
void check_group_quantizer_laws()
{
  constexpr std::uint32_t one   = 1u << 20;
  constexpr std::uint32_t count = Quantizer::magnitudes;
  static_assert(Quantizer::bits >= 2 && Quantizer::bits <= 8);
  static_assert(count == 1u << (Quantizer::bits - 1));
  auto const& level = Quantizer::level;
  auto const& mark  = Quantizer::mark;

  mismatches order, marks;
  std::uint32_t last = 0;  // the largest level up to 1
  for (std::uint32_t i = 0; i < count; ++i) {
    double const exact = static_cast<double>(level[i]) * one;
    order.expect(i == 0 ? level[i] == 0 : level[i] > level[i - 1], true, i, level[i]);
    marks.expect(std::abs(mark[i] - exact) <= 1 && mark[i + 1] >= mark[i], true, i, mark[i]);
    if (mark[i] <= one) { last = i; }
  }
  CHECK(order.report() == "");
  CHECK(marks.report() == "");
  CHECK(mark[0] == 0);
  CHECK(mark[count] > one);

  std::vector<std::uint32_t> magnitudes;
  for (std::uint32_t m = 0; m < one; m += m < one / 64 ? 67 : 1009) { magnitudes.push_back(m); }
  magnitudes.push_back(one);
  mismatches beside, falls, mean, half;
  std::uint32_t least = 0;
  for (std::uint32_t const m : magnitudes) {
    std::uint32_t below = last;
    while (mark[below] > m) { --below; }
    double const gap  = mark[below < last ? below + 1 : below] - mark[below];
    double const over = std::max(m - static_cast<double>(level[last]) * one, 0.0);
    // Fixed point may put a magnitude on the other side of a level, by one unit.
    auto const off             = [&](double value) { return std::abs(value * one - m) - over - 2; };
    std::uint32_t const middle = Quantizer::round(m, 256, mark.data());
    half.expect(middle <= last && off(level[middle]) <= gap / 2, true, m, middle);
    if constexpr (Quantizer::dither::rounds == 0) {
      falls.expect(middle >= least, true, m, middle);
      least = middle;
      continue;
    }
    std::uint32_t before = count;
    double sum           = 0;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t const number = Quantizer::round(m, 2 * byte + 1, mark.data());
      beside.expect(number <= last && off(level[number]) <= gap, true, m, number);
      falls.expect(number <= before, true, m, byte);
      before = number;
      sum += static_cast<double>(level[number]) / 256;
    }
    falls.expect(before >= least, true, m, before);
    least = before;
    mean.expect(off(sum) <= gap / 512, true, m, sum);
  }
  CHECK(falls.report() == "");
  CHECK(half.report() == "");
  if constexpr (Quantizer::dither::rounds > 0) {
    CHECK(beside.report() == "");
    CHECK(mean.report() == "");
  }
  CHECK(Quantizer::round(0, 256, mark.data()) == 0);
  CHECK(Quantizer::round(one, 256, mark.data()) == last);
  check_group_scale_laws<typename Quantizer::scale>();
}

}  // namespace tersum::tests
