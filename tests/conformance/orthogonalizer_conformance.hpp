// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the orthogonalizer role, for every orthogonalizer of the library and of its users.

#pragma once

#include <tersum/lowrank/detail/cpu_factor.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace tersum::tests {

//! @brief Checks every law of the role on factors of up to `Rank` columns.
//!
//! - Columns become orthonormal, within 1e-5.
//! - They span what they spanned: the first column keeps its direction, apart from its sign.
//! - A column of zeros stays one, and leaves the others to be orthonormal.
//! - The same factor gives the same bits.
template <orthogonalizer Orthogonalizer, int Rank = 8>
void check_orthogonalizer_laws()
{
  constexpr std::size_t length = 300;
  auto const column            = [](std::vector<float> const& values, int k) {
    return values.data() + static_cast<std::size_t>(k) * length;
  };
  auto const dot = [](float const* a, float const* b) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum;
  };
  for (int rank = 1; rank <= Rank; rank += rank < 3 ? 1 : 3) {
    for (bool const with_zeros : {false, true}) {
      if (with_zeros && rank == 1) { continue; }
      CAPTURE(rank);
      CAPTURE(with_zeros);
      std::mt19937 random(static_cast<unsigned>(rank));
      std::normal_distribution<float> normal;
      std::vector<float> values(length * static_cast<std::size_t>(rank));
      for (float& v : values) { v = normal(random); }
      if (with_zeros) { std::fill_n(values.end() - length, length, 0.0f); }
      std::vector<float> const before = values;
      std::vector<float> again        = values;
      for (std::vector<float>* each : {&values, &again}) {
        detail::cpu_factor factor{instruction_set::baseline, each->data(), length, rank};
        Orthogonalizer::orthogonalize(factor);
      }
      CHECK(values == again);
      for (int k = 0; k < rank; ++k) {
        for (int l = 0; l <= k; ++l) {
          bool const one = k == l && !(with_zeros && k == rank - 1);
          CHECK(std::abs(dot(column(values, k), column(values, l)) - (one ? 1 : 0)) < 1e-5);
        }
      }
      double const norm = std::sqrt(dot(column(before, 0), column(before, 0)));
      CHECK(std::abs(std::abs(dot(column(before, 0), column(values, 0))) / norm - 1) < 1e-5);
    }
  }
}

}  // namespace tersum::tests
