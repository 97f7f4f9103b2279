// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How the columns of a tall factor are made orthonormal, keeping their span. Dependent and zero columns become zero.
//!
//! An orthogonalizer works on a factor of at most `max_rank` columns through these members: `rank()`; `gram(double*)`, the
//! products of all pairs of columns; `multiply(float const*)`, the factor times an upper triangle; `dot(k, l)`;
//! `subtract(k, c, l)`, column k less c times column l; `scale(k, c)`. Squares of small matrices have rows of `max_rank`.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>

#include <cmath>
#include <type_traits>

namespace tersum::inline v0 {

inline constexpr int max_rank = 64;  //!< Columns of a factor, at most.

namespace detail {

//! A column is dependent when less than this share of its squared norm is left beside the columns before it: float32
//! products of long columns are known to about 2^-20 of their norm.
inline constexpr double dependent_below = 0x1p-40;

//! Columns of a smaller squared norm count as zero, so that the reciprocal is a finite float.
inline constexpr double zero_below = 0x1p-200;

//! @brief Of a Gram matrix (upper triangle, destroyed) the upper triangle that makes its columns orthonormal.
//! @return The largest cosine between two columns.
inline double invert_cholesky(int rank, double* gram, float* inverse)
{
  double factor[max_rank];  // of the columns, to unit norm; 0 for a column that becomes zero
  for (int k = 0; k < rank; ++k) {
    double const square = gram[k * max_rank + k];
    factor[k]           = square > zero_below ? 1.0 / std::sqrt(square) : 0.0;
  }
  double largest = 0;
  for (int k = 0; k < rank; ++k) {
    double* const row = gram + k * max_rank;
    row[k]            = 1.0;
    for (int l = k + 1; l < rank; ++l) {
      row[l]  = row[l] * factor[k] * factor[l];
      largest = maximum(largest, std::fabs(row[l]));
    }
  }
  for (int j = 0; j < rank; ++j) {
    double* const row = gram + j * max_rank;
    if (row[j] < dependent_below) { factor[j] = 0.0; }
    if (factor[j] == 0.0) { continue; }
    double const root = 1.0 / std::sqrt(row[j]);
    for (int l = j; l < rank; ++l) { row[l] = row[l] * root; }
    for (int k = j + 1; k < rank; ++k) {
      double const share = row[k];
      double* const to   = gram + k * max_rank;
      for (int l = k; l < rank; ++l) { to[l] = to[l] - share * row[l]; }
    }
  }
  for (int k = 0; k < rank; ++k) {
    double sum[max_rank] = {};
    float* const out     = inverse + k * max_rank;
    for (int l = 0; l < rank; ++l) { out[l] = 0.0f; }
    if (factor[k] == 0.0) { continue; }
    for (int t = k; t < rank; ++t) {
      if (factor[t] == 0.0) { continue; }
      double const* const row = gram + t * max_rank;
      double const value      = ((t == k ? 1.0 : 0.0) - sum[t]) / row[t];
      out[t]                  = static_cast<float>(value * factor[k]);
      for (int l = t + 1; l < rank; ++l) { sum[l] = sum[l] + value * row[l]; }
    }
  }
  return largest;
}

//! One pass of Cholesky QR; returns the largest cosine between two columns before it.
template <class Factor>
double cholesky_pass(Factor& factor)
{
  double gram[max_rank * max_rank];
  float inverse[max_rank * max_rank];
  factor.gram(gram);
  double const cosine = invert_cholesky(factor.rank(), gram, inverse);
  factor.multiply(inverse);
  return cosine;
}

}  // namespace detail

//! @brief Modified Gram-Schmidt, every column projected twice (Giraud et al. 2005: twice is enough).
//!
//! What PowerSGD was published with. As many dependent sums as pairs of columns: fine for a few columns.
struct gram_schmidt {
  template <class Factor>
  static void orthogonalize(Factor& factor)
  {
    for (int k = 0; k < factor.rank(); ++k) {
      double const square = factor.dot(k, k);
      if (!(square > detail::zero_below)) {
        factor.scale(k, 0.0);
        continue;
      }
      factor.scale(k, 1.0 / std::sqrt(square));
      double left = 1.0;
      for (int sweep = 0; sweep < 2; ++sweep) {
        for (int l = 0; l < k; ++l) { factor.subtract(k, factor.dot(l, k), l); }
        left = factor.dot(k, k);
        if (left < detail::dependent_below) { break; }
      }
      factor.scale(k, left < detail::dependent_below ? 0.0 : 1.0 / std::sqrt(left));
    }
  }
};

//! @brief Cholesky QR, twice: Gram matrix in double, checked pivots, one triangle applied to all columns at once.
//!
//! Orthonormal to float32 where the columns, scaled to unit norm, have a condition below about 10^5 (Fukaya et al.,
//! CholeskyQR2, 2014): so it is in PowerSGD from the third step on, not in the first ones.
struct cholesky_qr2 {
  template <class Factor>
  static void orthogonalize(Factor& factor)
  {
    detail::cholesky_pass(factor);
    detail::cholesky_pass(factor);
  }
};

//! @brief Cholesky QR until the columns were nearly orthogonal before the last pass: once or twice when the warm start
//! is good, three times for the worst factors. The default.
//!
//! A factor that is not done after `max_passes` goes through Gram-Schmidt.
struct robust_cholesky_qr2 {
  static constexpr int max_passes = 4;

  template <class Factor>
  static void orthogonalize(Factor& factor)
  {
    for (int pass = 0; pass < max_passes; ++pass) {
      // With cosines of 2^-9 between 64 columns the condition is below 4/3: one pass leaves rounding only.
      if (detail::cholesky_pass(factor) <= 0x1p-9) { return; }
    }
    gram_schmidt::orthogonalize(factor);
  }
};

//! What an orthogonalizer may ask of a factor; for concepts and documentation only.
struct factor_archetype {
  [[nodiscard]] int rank() const;
  void gram(double* products);
  void multiply(float const* upper);
  [[nodiscard]] double dot(int k, int l) const;
  void subtract(int k, double share, int l);
  void scale(int k, double factor);
};

// clang-format off
template <class T> concept has_orthogonalize = requires(factor_archetype& factor) { T::orthogonalize(factor); };

//! How a factor becomes orthonormal: `gram_schmidt`, `cholesky_qr2`, `robust_cholesky_qr2`.
template <class T> concept orthogonalizer = policy<T> && has_orthogonalize<T>;
// clang-format on

static_assert(orthogonalizer<gram_schmidt>, "tersum: must model tersum::orthogonalizer");
static_assert(orthogonalizer<cholesky_qr2>, "tersum: must model tersum::orthogonalizer");
static_assert(orthogonalizer<robust_cholesky_qr2>, "tersum: must model tersum::orthogonalizer");

}  // namespace tersum::inline v0
