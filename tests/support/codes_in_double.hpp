// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Formulas in double that exchanges are compared with: sums, and what rotated chunks in Lloyd-Max codes decode to.

#pragma once

#include "chunk_rotation.hpp"

#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/random/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tersum::tests {

//! a * x + b * y
[[nodiscard]] inline std::vector<double> combine(double a,
                                                 std::vector<double> const& x,
                                                 double b,
                                                 std::vector<double> const& y)
{
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) { out[i] = a * x[i] + b * y[i]; }
  return out;
}

//! Whether floats are within 1e-6 of the largest magnitude in `scale`, as a check; of residuals `scale` is what was encoded.
[[nodiscard]] inline bool are_near(std::span<float const> got,
                                   std::vector<double> const& want,
                                   std::vector<double> const& scale)
{
  double largest = 0, error = 0;
  for (double const v : scale) { largest = std::max(largest, std::abs(v)); }
  for (std::size_t i = 0; i < got.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(got[i]) - want[i]));
  }
  CAPTURE(error);
  CAPTURE(largest);
  CHECK(error <= 1e-6 * largest);
  return error <= 1e-6 * largest;
}

//! C: the chunks of x, rotated with the signs of a step, on the levels of `lloyd_max<Bits>`, times |x|^2 / <x, levels>.
template <int Bits, std::size_t Size>
[[nodiscard]] std::vector<double> compress_in_double(std::vector<double> const& x,
                                                     std::uint64_t step,
                                                     std::uint64_t seed)
{
  using book = lloyd_max<Bits>;
  std::vector<double> out(x.size());
  for (std::size_t begin = 0, chunk = 0; begin < x.size(); begin += Size, ++chunk) {
    std::size_t const count = std::min(Size, x.size() - begin);
    chunk_rotation<Size> const turn{chunk, sign_key(step, seed)};
    std::vector<double> padded(Size);
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(begin), count, padded.begin());
    std::vector<double> y = turn.forward(padded.data());
    double square = 0, along = 0;
    for (double const v : y) { square += v * v; }
    double const rms = std::sqrt(square / Size);
    for (double& v : y) {
      int level = 0;
      while (level + 1 < book::magnitudes &&
             std::abs(v) >= rms * static_cast<double>(book::boundaries()[level])) {
        ++level;
      }
      double const of_level = std::copysign(static_cast<double>(book::levels()[level]), v);
      along += v * of_level;
      v = of_level;
    }
    for (double& v : y) { v = v * square / along; }
    y = turn.backward(y);
    for (std::size_t j = 0; j < count; ++j) { out[begin + j] = y[j] / Size; }
  }
  return out;
}

}  // namespace tersum::tests
