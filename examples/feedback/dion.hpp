// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Dion (Ahn et al., 2025), one matrix: B = M + G, P = orthonormal columns of B Q, R = B^T P, both of the ranks' mean;
//! M = B - (1 - mu) P R^T, Q = R with columns of norm 1, X = X - rate sqrt(rows / columns) P Q^T.

#pragma once

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <span>

struct dion_feedback {
  static constexpr bool enabled = true;
  constexpr tersum::description describe() const { return {"dion_feedback", mu}; }

  float mu = 0.95f;

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float before(Arithmetic const&, float gradient, float momentum) const
  {
    return Arithmetic::add(gradient, momentum);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float after(Arithmetic const&, float value, float lost, float) const
  {
    return Arithmetic::fma(mu - 1.0f, Arithmetic::subtract(value, lost), value);
  }
};
template <int Rank>
using dion_codec = tersum::
  low_rank_codec<tersum::low_rank<Rank>, float, tersum::low_rank_schedule::paired, dion_feedback>;

//! @brief Of what the exchange of a `dion_codec` has left in the workspace, makes the step of one matrix. The next exchange starts
//! from R itself, whose columns span the same B Q as those of Q do.
template <class Plan>
void dion_update(Plan const& plan, std::span<std::byte> workspace, float rate, float* weights)
{
  std::size_t const rows = plan.gradient().tensors[0].rows, columns = plan.coordinates() / rows;
  auto const* p     = reinterpret_cast<float const*>(workspace.data() + plan.offset("even_factor"));
  auto const* r     = reinterpret_cast<float const*>(workspace.data() + plan.offset("odd_factor"));
  float const scale = rate * std::sqrt(static_cast<float>(rows) / static_cast<float>(columns));
  for (int k = 0; k < plan.codec().rank; ++k, p += rows, r += columns) {
    float square = 0;
    for (std::size_t j = 0; j < columns; ++j) { square += r[j] * r[j]; }
    float const step = square > 0 ? scale / std::sqrt(square) : 0.0f;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      weights[i] -= step * p[i / columns] * r[i % columns];
    }
  }
}
