// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A law of codecs with feedback: after any finite sequence of gradients, zero gradients empty the residuals, and no flag stays.

#pragma once

#include "support/loopback_run.hpp"

#include <tersum/layout.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! A matrix, which low-rank codecs need. No chunk divides it.
inline constexpr std::array<tensor, 1> drained_tensors{{{.rows = 63, .columns = 65}}};

//! @brief What drains: the norm of the sum of the ranks' residuals. What the ranks' residuals differ in stays in those of
//! factors without codes, which subtract the mean from each.
template <class Run>
[[nodiscard]] double summed_residual(Run const& run, int world)
{
  double square = 0;
  for (std::size_t i = 0; i < run.residual().size(); ++i) {
    double sum = 0;
    for (int rank = 0; rank < world; ++rank) { sum += static_cast<double>(run.residual(rank)[i]); }
    square += sum * sum;
  }
  return std::sqrt(square);
}

//! @brief Exchanges gradients of magnitudes from `least` to `most` in `loud` steps, of one sign where `same_signs`, and then zeros.
template <class Element, class Codec>
void check_draining(
  Codec const& codec, float least, float most, bool same_signs = false, int loud = 1)
{
  constexpr int world = 2, quiet = 400;
  layout gradient{.coordinates = 63 * 65, .tensors = drained_tensors};
  if (!codec.plan(gradient, {.size = world, .rank = 0}).check().ok()) { gradient.tensors = {}; }
  CAPTURE(least);
  CAPTURE(most);
  CAPTURE(same_signs);
  loopback_run<Codec, Element> run{codec, gradient, world, 7};
  std::vector<std::vector<Element>> in(world, std::vector<Element>(gradient.coordinates));
  std::uint32_t random = 1;
  double sent          = 0;  // the norm of the sum of all gradients
  std::vector<double> sums(gradient.coordinates);
  for (int step = 0; step < loud; ++step) {
    for (auto& values : in) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        random              = random * 1664525u + 1013904223u;
        float const share   = static_cast<float>(random >> 8) * 0x1p-24f;
        float const value   = least + (most - least) * share;
        bool const negative = same_signs ? i % 3 == 0 : (random & 16u) != 0;
        values[i]           = from_float<Element>(negative ? -value : value);
        sums[i] += static_cast<double>(to_float(values[i]));
      }
    }
    static_cast<void>(run.exchange(in));
  }
  for (double const sum : sums) { sent += sum * sum; }
  for (auto& values : in) { std::fill(values.begin(), values.end(), Element{}); }
  for (int step = 0; step < quiet; ++step) { static_cast<void>(run.exchange(in)); }
  for (int rank = 0; rank < world; ++rank) {
    CHECK_FALSE(run.header(rank).last_was_non_finite());
    for (float const kept : run.residual(rank)) { REQUIRE(std::isfinite(kept)); }
  }
  // Every codec sends more of what is left than it keeps, each time that it sends it.
  CHECK(summed_residual(run, world) < std::sqrt(sent) * 0x1p-8);
}

}  // namespace tersum::tests
