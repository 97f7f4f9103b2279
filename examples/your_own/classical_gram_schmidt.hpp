// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An orthogonalizer: every column loses its shares of those before it, twice, and is divided by its length.

#pragma once

#include <tersum/lowrank/orthogonalizers.hpp>

#include <cmath>

struct classical_gram_schmidt {
  constexpr tersum::description describe() const { return {"classical_gram_schmidt"}; }
  // `factor` has what `factor_archetype` lists; its numbers are those that all threads see.
  TERSUM_EXEC_CHECK_DISABLE
  template <class Factor>
  TERSUM_HOST_DEVICE static void orthogonalize(Factor& factor)
  {
    for (int k = 0; k < factor.rank(); ++k) {
      double const before = factor.dot(k, k);
      for (int sweep = 0; sweep < 2; ++sweep) {
        double shares[tersum::max_rank];
        for (int l = 0; l < k; ++l) { shares[l] = factor.dot(l, k); }
        for (int l = 0; l < k; ++l) { factor.subtract(k, shares[l], l); }
      }
      // What is next to nothing is rounding: such a column becomes zeros.
      double const left = factor.dot(k, k);
      factor.scale(k, left > before * 1e-12 ? 1 / ::sqrt(left) : 0.0);
    }
  }
};
static_assert(tersum::orthogonalizer<classical_gram_schmidt>);
