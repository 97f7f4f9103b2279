// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotator: random signs, then the orthonormal cosine transform (DCT-II) of a chunk by its definition.

#pragma once

#include <tersum/tersum.hpp>

template <int Size>
struct cosine_transform {
  static constexpr int rotation_size = Size;
  constexpr tersum::description describe() const { return {"cosine_transform", Size}; }

  TERSUM_HOST_DEVICE void forward(auto const& g, auto& x, auto& y, auto const& key) const
  {
    tersum::flip_signs(g, x, key);
    multiply(g, x, y, [&](int to, int from) { return entry(g, to, from); });
  }
  TERSUM_HOST_DEVICE void backward(auto const& g, auto& x, auto& y, auto const& key) const
  {
    multiply(g, x, y, [&](int to, int from) { return entry(g, from, to); });
    tersum::flip_signs(g, x, key);
  }

 private:
  TERSUM_HOST_DEVICE static void multiply(auto const& g, auto& x, auto& y, auto const& matrix)
  {
    g.each(Size, [&](int to) {
      y[to] = 0;
      for (int i = 0; i < Size; ++i) { y[to] = g.fma(matrix(to, i), x[i], y[to]); }
    });
    g.sync();
    g.each(Size, [&](int i) { x[i] = y[i]; });
    g.sync();
  }

  // cos(pi (2 i + 1) k / (2 Size)) by its series, whose fused products have the same bits everywhere.
  TERSUM_HOST_DEVICE static float entry(auto const& g, int k, int i)
  {
    int const quarters = (2 * i + 1) * k / Size % 4;
    bool const sine    = quarters % 2 != 0;  // cos(90 degrees + a) = -sin(a)
    float const a      = g.multiply(1.57079633f, static_cast<float>((2 * i + 1) * k % Size) / Size);
    float sum          = 1;
    for (int n = sine ? 13 : 12; n > 1; n -= 2) {
      sum = g.fma(g.divide(-g.multiply(a, a), static_cast<float>(n * n - n)), sum, 1);
    }
    float const size = g.square_root((k == 0 ? 1.0f : 2.0f) / Size);
    return g.multiply(sine ? g.multiply(sum, a) : sum, quarters % 3 == 0 ? size : -size);
  }
};
static_assert(tersum::rotator<cosine_transform<128>>);
