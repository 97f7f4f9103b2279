// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of the matrices of a bucket in double.

#pragma once

#include <tersum/lowrank/low_rank_codec.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace tersum::tests {

//! @brief The largest error of a turn's products in units of what float sums of gradient and residual may lose, in any order.
//!
//! A sum of 2 n products rounds each of them at most 2 n times, by 2^-24 of the sum of their magnitudes.
template <class Codec>
[[nodiscard]] double product_error(plan<Codec> const& plan,
                                   int turn,
                                   std::span<float const> gradient,
                                   std::span<float const> residual,
                                   float const* from,
                                   float const* to)
{
  double worst = 0;
  plan.for_each_matrix([&](matrix_record const& m) {
    std::uint64_t const length = m.length(turn), terms = m.length(1 - turn);
    for (std::uint64_t k = 0; k < m.rank; ++k) {
      for (std::uint64_t i = 0; i < length; ++i) {
        double sum = 0, magnitudes = 0;
        for (std::uint64_t t = 0; t < terms; ++t) {
          std::uint64_t const row    = m.sends_rows(turn) ? i : t;
          std::uint64_t const column = m.sends_rows(turn) ? t : i;
          std::uint64_t const at     = m.offset + row * m.columns + column;
          auto const f               = static_cast<double>(from[m.slot[1 - turn] + k * terms + t]);
          auto const g               = static_cast<double>(gradient[at]);
          auto const e               = static_cast<double>(residual[at]);
          sum += (g + e) * f;
          magnitudes += (std::fabs(g) + std::fabs(e)) * std::fabs(f);
        }
        double const error =
          std::fabs(sum - static_cast<double>(to[m.slot[turn] + k * length + i]));
        double const bound = 0x1p-24 * static_cast<double>(2 * terms + 1) * magnitudes;
        worst              = std::max(worst, bound > 0 ? error / bound : error > 0 ? 2.0 : 0.0);
      }
    }
  });
  return worst;
}

}  // namespace tersum::tests
