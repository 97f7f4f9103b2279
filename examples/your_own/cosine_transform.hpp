// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotator: random signs, then the orthonormal cosine transform (DCT-II) of a chunk by its definition.

#pragma once

#include <tersum/tersum.hpp>

template <int Size>
struct cosine_transform {
  static constexpr int rotation_size = Size;

  template <class Group>
  TERSUM_HOST_DEVICE void forward(Group const& group,
                                  float (&x)[Size],
                                  float (&scratch)[Size],
                                  tersum::rotation_key const& key) const
  {
    tersum::flip_signs(group, x, key);
    multiply(group, x, scratch, [](int to, int from) { return entry<Group>(to, from); });
  }
  template <class Group>
  TERSUM_HOST_DEVICE void backward(Group const& group,
                                   float (&x)[Size],
                                   float (&scratch)[Size],
                                   tersum::rotation_key const& key) const
  {
    multiply(group, x, scratch, [](int to, int from) { return entry<Group>(from, to); });
    tersum::flip_signs(group, x, key);
  }

 private:
  template <class Group, class Matrix>
  static TERSUM_HOST_DEVICE void multiply(Group const& group,
                                          float (&x)[Size],
                                          float (&product)[Size],
                                          Matrix const& matrix)
  {
    group.each(Size, [&](int to) {
      product[to] = 0;
      for (int i = 0; i < Size; ++i) { product[to] = Group::fma(matrix(to, i), x[i], product[to]); }
    });
    group.sync();
    group.each(Size, [&](int i) { x[i] = product[i]; });
    group.sync();
  }

  // Row k of the matrix: cos(pi (2 i + 1) k / (2 Size)), by a series of fused products, which have the same bits everywhere.
  template <class Group>
  static TERSUM_HOST_DEVICE float entry(int k, int i)
  {
    int const quarters = (2 * i + 1) * k / Size % 4;
    bool const sine    = quarters % 2 != 0;  // cos(90 degrees + a) = -sin(a)
    float const part   = static_cast<float>((2 * i + 1) * k % Size) / Size;
    float const angle  = Group::multiply(part, 1.57079633f);
    float sum          = 1;
    for (int n = sine ? 13 : 12; n > 1; n -= 2) {
      float const next =
        Group::divide(-Group::multiply(angle, angle), static_cast<float>(n * n - n));
      sum = Group::fma(next, sum, 1);
    }
    sum              = Group::multiply(sum, sine ? angle : 1);
    float const size = Group::square_root((k == 0 ? 1.0f : 2.0f) / Size);
    return Group::multiply(sum, quarters == 1 || quarters == 2 ? -size : size);
  }
};
static_assert(tersum::rotator<cosine_transform<128>>);
