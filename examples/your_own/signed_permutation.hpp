// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotator: coordinates change places at random and take random signs. Spreads nothing, but costs no arithmetic.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>
#include <type_traits>

using tersum::rotation_key;

struct signed_permutation {
  static constexpr int rotation_size = 1;  // chunks of any size
  constexpr tersum::description describe() const { return {"signed_permutation"}; }

  TERSUM_HOST_DEVICE void forward(auto const& g, auto& x, auto& y, rotation_key const& key) const
  {
    tersum::flip_signs(g, x, key);
    move(
      g, x, y, [&](int i, int to) { y[to] = x[i]; }, key);
  }
  TERSUM_HOST_DEVICE void backward(auto const& g, auto& x, auto& y, rotation_key const& key) const
  {
    move(
      g, x, y, [&](int i, int to) { y[i] = x[to]; }, key);
    tersum::flip_signs(g, x, key);
  }

 private:
  // Calls one(i, the place of i): multiplications by odd numbers and shifts are invertible modulo a power of two.
  TERSUM_HOST_DEVICE static void move(
    auto const& g, auto& x, auto& y, auto const& one, rotation_key const& key)
  {
    constexpr int size         = std::extent_v<std::remove_reference_t<decltype(x)>>;
    std::uint32_t const random = key.word<size>(0);
    g.each(size, [&](int i) {
      std::uint32_t at = (static_cast<std::uint32_t>(i) * (random | 1) + (random >> 8)) % size;
      at               = (at ^ at >> 4) * (random >> 16 | 1) % size;
      one(i, static_cast<int>(at));
    });
    g.sync();
    g.each(size, [&](int i) { x[i] = y[i]; });
    g.sync();
  }
};
static_assert(tersum::rotator<signed_permutation>);
