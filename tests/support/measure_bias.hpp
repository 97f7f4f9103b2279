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
  double worst;       // |mean error| of the worst coordinate, in standard deviations
  double at_first;    // the same at the first coordinates of all chunks together
  double projection;  // <mean error, mean gradient>, in standard deviations
};

//! @brief The mean error of `steps` exchanges of the same gradients, drawn from the seed: an exchange's errors are spread
//! over the coordinates alike, and those of different exchanges, with fresh signs, are independent.
template <class Codec>
[[nodiscard]] biases measure_bias(Codec const& codec, int world, int seed, int steps = 400)
{
  constexpr std::size_t d = 1024;
  auto const in = normal_gradients<std::mt19937_64>(world, d, static_cast<unsigned>(18 + seed));
  loopback_run<Codec> run{codec, layout{d}, world, static_cast<std::uint64_t>(seed)};
  std::vector<double> truth(d), error(d);
  for (auto const& gradient : in) {
    for (std::size_t i = 0; i < d; ++i) { truth[i] += static_cast<double>(gradient[i]) / world; }
  }
  // Chunks may have codes of several widths.
  std::vector<double> variance(d / Codec::chunk_size);
  for (int t = 0; t < steps; ++t) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) {
      double const e = static_cast<double>(out[i]) - truth[i];
      error[i] += e / steps;
      variance[i / Codec::chunk_size] += e * e / (steps * static_cast<double>(Codec::chunk_size));
    }
  }
  double spread = 0, along = 0, first = 0;
  biases out{};
  for (std::size_t i = 0; i < d; ++i) {
    double const sigma = std::sqrt(variance[i / Codec::chunk_size] / steps);
    out.worst          = std::max(out.worst, std::abs(error[i]) / sigma);
    spread += truth[i] * truth[i] * sigma * sigma;
    along += error[i] * truth[i];
    if (i % Codec::chunk_size == 0) { first += error[i] / sigma; }
  }
  out.at_first   = std::abs(first) / std::sqrt(static_cast<double>(variance.size()));
  out.projection = std::abs(along) / std::sqrt(spread);
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
  }
}

}  // namespace tersum::tests
