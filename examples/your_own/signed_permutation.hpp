// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotator: coordinates change places at random and take random signs. Spreads nothing, but costs no arithmetic.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>

struct signed_permutation {
  static constexpr int rotation_size = 1;  // chunks of any size

  // Where coordinate i goes: multiplications by odd numbers and shifts are invertible modulo a power of two.
  template <int Size>
  static constexpr TERSUM_HOST_DEVICE int place(int i, std::uint32_t random)
  {
    auto at = static_cast<std::uint32_t>(i) * (random | 1) + (random >> 8);
    at      = (at & (Size - 1)) ^ (at & (Size - 1)) >> 4;
    return static_cast<int>(at * (random >> 16 | 1) & (Size - 1));
  }

  template <class Group, int Size>
  TERSUM_HOST_DEVICE void forward(Group const& group,
                                  float (&x)[Size],
                                  float (&scratch)[Size],
                                  tersum::rotation_key const& key) const
  {
    tersum::flip_signs(group, x, key);
    auto const random = key.word<Size>(0);
    group.each(Size, [&](int i) { scratch[place<Size>(i, random)] = x[i]; });
    group.sync();
    group.each(Size, [&](int i) { x[i] = scratch[i]; });
    group.sync();
  }

  template <class Group, int Size>
  TERSUM_HOST_DEVICE void backward(Group const& group,
                                   float (&x)[Size],
                                   float (&scratch)[Size],
                                   tersum::rotation_key const& key) const
  {
    auto const random = key.word<Size>(0);
    group.each(Size, [&](int i) { scratch[i] = x[place<Size>(i, random)]; });
    group.sync();
    group.each(Size, [&](int i) { x[i] = scratch[i]; });
    group.sync();
    tersum::flip_signs(group, x, key);
  }
};
static_assert(tersum::rotator<signed_permutation>);
