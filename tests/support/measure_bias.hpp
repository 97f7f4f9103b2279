// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whether the mean of many exchanges is the mean of the gradients.

#pragma once

#include "loopback_run.hpp"
#include "normal_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tersum::tests {

//! What is left of the error in the mean of many exchanges; of an unbiased codec it is normal.
struct biases {
  double worst;        // |mean error| of the worst coordinate, in standard deviations
  double at_first;     // the same at the first coordinates of all chunks together
  double projection;   // <mean error, mean gradient>, in standard deviations
  double in_rotation;  // of all rotated values: at the first coordinates, with each time's signs
};

//! @brief The mean error of `steps` exchanges of the same gradients, drawn from the seed: an exchange's errors are spread
//! over the coordinates alike, and those of different exchanges, with fresh signs, are independent.
template <class Codec>
[[nodiscard]] biases measure_bias(Codec const& codec, int world, int seed, int steps = 400)
{
  constexpr std::size_t d = 1000;  // the last chunk is padded
  constexpr std::size_t c = Codec::chunk_size;
  auto const in = normal_gradients<std::mt19937_64>(world, d, static_cast<unsigned>(18 + seed));
  loopback_run<Codec> run{codec, layout{d}, world, static_cast<std::uint64_t>(seed)};
  std::vector<double> truth(d), error(d);
  for (auto const& gradient : in) {
    for (std::size_t i = 0; i < d; ++i) { truth[i] += static_cast<double>(gradient[i]) / world; }
  }
  // Chunks may have codes of several widths.
  std::vector<double> variance((d + c - 1) / c), rotated(variance.size());
  for (int t = 0; t < steps; ++t) {
    std::uint64_t const key = run.header().sign_key;
    auto const& out         = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) {
      double const e = static_cast<double>(out[i]) - truth[i];
      error[i] += e / steps;
      variance[i / c] += e * e / (steps * static_cast<double>(std::min(c, d - i / c * c)));
      if (i % c == 0) { rotated[i / c] += ((sign_bits(i / 32, key) & 1) != 0 ? -e : e) / steps; }
    }
  }
  // Without rotation a coordinate's variance is up to a quarter of a step's square, and a sixth in the mean.
  double const most = Codec::rotates_chunks ? 1 : 1.5;
  double spread = 0, along = 0, first = 0, with_signs = 0;
  biases out{};
  for (std::size_t i = 0; i < d; ++i) {
    double const sigma = std::sqrt(most * variance[i / c] / steps);
    out.worst          = std::max(out.worst, std::abs(error[i]) / sigma);
    spread += truth[i] * truth[i] * sigma * sigma;
    along += error[i] * truth[i];
    if (i % c == 0) {
      first += error[i] / sigma;
      with_signs += rotated[i / c] / sigma;
    }
  }
  double const chunks = static_cast<double>(variance.size());
  if constexpr (saturates<Codec>) { CHECK(run.record(0).saturated == 0); }
  out.at_first    = std::abs(first) / std::sqrt(chunks);
  out.in_rotation = std::abs(with_signs) / std::sqrt(chunks);
  out.projection  = std::abs(along) / std::sqrt(spread);
  return out;
}

//! @brief Checks for three seeds that estimates are unbiased in every coordinate, at the beginning of the chunks and along
//! the gradient: within five deviations, which a thousand coordinates exceed by a chance of 6e-4.
template <class Codec>
void check_unbiased(Codec const& codec, int world)
{
  for (int const seed : {5, 6, 7}) {
    CAPTURE(seed);
    biases const found = measure_bias(codec, world, seed);
    CHECK(found.worst < 5);
    CHECK(found.at_first < 5);
    CHECK(found.projection < 5);
    CHECK(found.in_rotation < 5);
  }
}

}  // namespace tersum::tests
