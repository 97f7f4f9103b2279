// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What gradient_kinds.hpp declares.

#include "gradient_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tersum::tests {

namespace {

float value_of(
  gradient_kind kind, std::size_t i, double scale, float largest, number_source& source)
{
  switch (kind) {
    case gradient_kind::zeros: return 0;
    case gradient_kind::heavy_tails:
      return static_cast<float>(
        scale * std::clamp(std::tan(3.141592653589793 * (source.uniform() - 0.5)), -1e4, 1e4));
    case gradient_kind::sparse:
      return source.random() % 16 == 0 ? static_cast<float>(scale * source.normal()) : 0.0f;
    case gradient_kind::one_large: return static_cast<float>(1e-3 * scale * source.normal());
    case gradient_kind::constant: return static_cast<float>(scale);
    case gradient_kind::alternating: return static_cast<float>(i % 2 == 0 ? scale : -scale);
    case gradient_kind::denormal: return static_cast<float>(source.normal()) * 0x1p-100f * 0x1p-28f;
    case gradient_kind::tiny: return static_cast<float>(1e-30 * source.normal());
    case gradient_kind::huge:
      return static_cast<float>(largest * std::pow(10.0, -8 * source.uniform())) *
             (source.random() % 2 == 0 ? 1.0f : -1.0f);
    default: return static_cast<float>(scale * source.normal());
  }
}

}  // namespace

gradients make_gradients(
  gradient_kind kind, std::size_t coordinates, int world, float largest, number_source& source)
{
  auto const ranks   = static_cast<std::size_t>(world);
  double const scale = std::pow(10.0, static_cast<double>(source.from_to(-4, 0)));
  bool const alike   = kind == gradient_kind::opposite || kind == gradient_kind::identical ||
                     kind == gradient_kind::constant;
  gradients out(ranks, std::vector<float>(coordinates));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < coordinates; ++i) {
      float const own = alike && rank > 0 ? out[0][i] : value_of(kind, i, scale, largest, source);
      out[rank][i]    = own;
    }
  }
  if (coordinates == 0) { return out; }
  std::size_t const where = source.below(coordinates);
  std::size_t const who   = source.below(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < coordinates; ++i) {
      float& v = out[rank][i];
      if (kind == gradient_kind::opposite && rank % 2 == 1) { v = -v; }
      if (kind == gradient_kind::one_rank && rank != who) { v = 0; }
      if (kind == gradient_kind::correlated && rank > 0) { v = out[0][i] + v / 3; }
    }
  }
  if (kind == gradient_kind::one_large) { out[who][where] = static_cast<float>(10 * scale); }
  if (kind == gradient_kind::with_nan) {
    out[who][where] = std::numeric_limits<float>::quiet_NaN();
  }
  if (kind == gradient_kind::with_inf) {
    out[who][where] =
      std::numeric_limits<float>::infinity() * (source.random() % 2 == 0 ? 1.0f : -1.0f);
  }
  return out;
}

}  // namespace tersum::tests
