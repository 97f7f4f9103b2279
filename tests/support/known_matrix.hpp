// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Matrices whose singular values and vectors are known, in double.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace tersum::tests {

//! @brief Columns of doubles.
using columns = std::vector<std::vector<double>>;

[[nodiscard]] inline double dot(std::vector<double> const& a, std::vector<double> const& b)
{
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) { sum += a[i] * b[i]; }
  return sum;
}

//! @brief `count` orthonormal columns of random directions: Gram-Schmidt twice in double.
[[nodiscard]] inline columns random_basis(std::size_t length, std::size_t count, unsigned seed)
{
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  columns basis;
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double> column(length);
    for (double& v : column) { v = normal(random); }
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (auto const& other : basis) {
        double const share = dot(column, other);
        for (std::size_t i = 0; i < length; ++i) { column[i] -= share * other[i]; }
      }
    }
    double const norm = std::sqrt(dot(column, column));
    for (double& v : column) { v /= norm; }
    basis.push_back(std::move(column));
  }
  return basis;
}

//! @brief U diag(values) V^T: its truncated singular value decompositions are known.
struct known_matrix {
  std::size_t rows, width;
  std::vector<double> values;  //!< Descending.
  columns u, v;

  known_matrix(std::size_t n, std::size_t m, std::vector<double> singular, unsigned seed)
    : rows(n), width(m), values(std::move(singular)), u(random_basis(n, values.size(), seed)),
      v(random_basis(m, values.size(), seed + 1))
  {
  }

  //! Row-major, plus normal noise of a standard deviation.
  [[nodiscard]] std::vector<float> dense(double noise = 0, unsigned seed = 3) const
  {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<float> out(rows * width);
    for (std::size_t i = 0; i < rows; ++i) {
      std::vector<double> row(width);
      for (std::size_t k = 0; k < values.size(); ++k) {
        double const share = u[k][i] * values[k];
        for (std::size_t j = 0; j < width; ++j) { row[j] += share * v[k][j]; }
      }
      for (std::size_t j = 0; j < width; ++j) {
        out[i * width + j] = static_cast<float>(row[j] + noise * normal(random));
      }
    }
    return out;
  }
};

//! @brief The values i^-power for i from 1 on.
[[nodiscard]] inline std::vector<double> power_law(std::size_t count, double power)
{
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::pow(static_cast<double>(i + 1), -power);
  }
  return values;
}

//! @brief How far columns of floats are from orthonormal: the largest entry of |P^T P - I|, zero columns left out.
[[nodiscard]] inline double orthogonality_error(float const* values, std::size_t length, int rank)
{
  columns p;
  for (int k = 0; k < rank; ++k) {
    float const* const begin = values + static_cast<std::size_t>(k) * length;
    p.emplace_back(begin, begin + length);
  }
  double worst = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    for (std::size_t l = 0; l <= k; ++l) {
      double const product = dot(p[k], p[l]);
      if (!std::isfinite(product)) { return product * product; }
      bool const is_one = k == l && product != 0;
      worst             = std::max(worst, std::fabs(product - (is_one ? 1.0 : 0.0)));
    }
  }
  return worst;
}

}  // namespace tersum::tests
