// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How the columns of a tall factor are made orthonormal, keeping their span. Dependent and zero columns become zero.
//!
//! An orthogonalizer works on a factor of at most `max_rank` columns through the members of `factor_archetype`. On a GPU all
//! threads of a block run it together: they share the work that it does in `each`, and all of them do the rest alike.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>

#include <math.h>

namespace tersum::inline v0 {

inline constexpr int max_rank = 64;  //!< Columns of a factor, at most.

namespace detail {

//! A column is dependent when less than this share of its squared norm is left after the projections on the columns before
//! it are subtracted. Products of long columns in float32 are known to about 2^-20 of their norm.
inline constexpr double dependent_below = 0x1p-40;

//! Columns of a smaller squared norm count as zero, so that the reciprocal of a norm is a finite float.
inline constexpr double zero_below = 0x1p-200;

//! @brief One pass of Cholesky QR (Fukaya et al., CholeskyQR2, 2014); returns the largest cosine between two columns before it.
//!
//! The columns are scaled to unit norm, and their Gram matrix is eliminated row by row. The same elimination, applied to
//! the identity matrix, is kept below the diagonal; it is the transpose of the triangle that makes the columns orthonormal.
TERSUM_EXEC_CHECK_DISABLE
template <class Factor>
TERSUM_INLINE float cholesky_pass(Factor& factor)
{
  int const rank        = factor.rank();
  double* const gram    = factor.gram();
  double* const scale   = factor.scales();  // of the columns, to unit norm
  float* const triangle = factor.triangle();
  factor.each(rank, [=](int k) {
    double const square = gram[k * max_rank + k];
    scale[k]            = square > zero_below ? 1.0 / ::sqrt(square) : 0.0;
  });
  float const cosine = factor.largest(rank * max_rank, [=](int i) {
    int const k = i / max_rank, l = i % max_rank;
    if (l >= rank) { return 0.0f; }
    gram[i] = l > k ? gram[i] * scale[k] * scale[l] : l == k && scale[k] > 0.0 ? 1.0 : 0.0;
    return l > k ? static_cast<float>(::fabs(gram[i])) : 0.0f;
  });
  for (int j = 0; j < rank; ++j) { factor.eliminate(j); }
  factor.each(rank * max_rank, [=](int i) {
    int const k = i / max_rank, l = i % max_rank;
    bool const kept = k <= l && l < rank && gram[k * max_rank + k] >= dependent_below &&
                      gram[l * max_rank + l] >= dependent_below;
    triangle[i] = kept ? static_cast<float>(gram[l * max_rank + k] * scale[k]) : 0.0f;
  });
  factor.multiply();
  return cosine;
}

}  // namespace detail

//! @brief Modified Gram-Schmidt, every column projected twice (Giraud et al. 2005: twice is enough).
//!
//! The orthogonalizer that PowerSGD was published with. Each pair of columns takes a sum that has to wait for the one
//! before, so that it is for a few columns.
struct gram_schmidt {
  constexpr description describe() const { return {"gram_schmidt"}; }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Factor>
  TERSUM_INLINE static void orthogonalize(Factor& factor)
  {
    for (int k = 0; k < factor.rank(); ++k) {
      double const square = factor.dot(k, k);
      if (!(square > detail::zero_below)) {
        factor.scale(k, 0.0);
        continue;
      }
      factor.scale(k, 1.0 / ::sqrt(square));
      double left = 1.0;
      for (int sweep = 0; sweep < 2; ++sweep) {
        for (int l = 0; l < k; ++l) { factor.subtract(k, factor.dot(l, k), l); }
        left = factor.dot(k, k);
        if (left < detail::dependent_below) { break; }
      }
      factor.scale(k, left < detail::dependent_below ? 0.0 : 1.0 / ::sqrt(left));
    }
  }
};

//! @brief The default: Cholesky QR, repeated until a pass finds columns that are nearly orthogonal already. That takes one
//! or two passes with a good warm start, and three for the worst factors.
//!
//! A factor that is not done after `max_passes` goes through Gram-Schmidt.
struct robust_cholesky_qr2 {
  static constexpr int max_passes = 4;
  constexpr description describe() const { return {"robust_cholesky_qr2"}; }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Factor>
  TERSUM_INLINE static void orthogonalize(Factor& factor)
  {
    for (int pass = 0; pass < max_passes; ++pass) {
      // With cosines of 2^-9 between 64 columns the condition is below 4/3: one pass leaves rounding only.
      if (detail::cholesky_pass(factor) <= 0x1p-9f) { return; }
    }
    gram_schmidt::orthogonalize(factor);
  }
};

//! @brief What an orthogonalizer may ask of a factor; for concepts and documentation only. Squares have rows of `max_rank`.
struct factor_archetype {
  [[nodiscard]] int rank() const;         //!< Columns.
  [[nodiscard]] double* gram();           //!< Products of all pairs of columns, the upper triangle.
  [[nodiscard]] double* scales() const;   //!< Room for one number per column.
  [[nodiscard]] float* triangle() const;  //!< Room for a square.
  template <class Body>
  void each(int count,
            Body body);  //!< body(i) for all i below count, in any order; then all see what it did.
  template <class Body>
  [[nodiscard]] float largest(
    int count, Body body);  //!< The same; the largest answer, none of which is negative.
  void eliminate(
    int j);         //!< Of the square that `gram` gave: row j by its pivot, unless that is below
                    //!< `dependent_below`; then the rows below it less their share of row j.
  void multiply();  //!< The factor becomes itself times `triangle`.
  [[nodiscard]] double dot(int k, int l) const;
  void subtract(int k, double share, int l);  //!< Column k less a share of column l.
  void scale(int k, double factor);
};

// clang-format off
template <class T> concept has_orthogonalize = requires(factor_archetype& factor) { T::orthogonalize(factor); };

//! How a factor becomes orthonormal: `gram_schmidt`, `robust_cholesky_qr2`.
template <class T> concept orthogonalizer = policy<T> && has_orthogonalize<T>;
// clang-format on

static_assert(orthogonalizer<gram_schmidt>, "tersum: must model tersum::orthogonalizer");
static_assert(orthogonalizer<robust_cholesky_qr2>, "tersum: must model tersum::orthogonalizer");

}  // namespace tersum::inline v0
