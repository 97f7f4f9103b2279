// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The randomized Hadamard transform of a chunk in memory, written once for all groups: the plain form of
//! `partial_hadamard`, and pieces for rotations of one's own.

#pragma once

#include <tersum/block/chunk_order.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>

namespace tersum::inline v0 {

//! @brief Flips the signs of the coordinates whose bits are 1: those that `chunk_order` names. The group then synchronizes.
template <class Group, std::size_t Size>
TERSUM_INLINE void flip_signs(Group const& g, float (&x)[Size], rotation_key const& key)
{
  constexpr int size = static_cast<int>(Size);
  g.each(size / 32, [&](int w) {
    std::uint32_t const word = key.template word<size>(w);
    for (int bit = 0; bit < 32; ++bit) {
      int const at = bit / 8 * (size / 4) + 8 * w + bit % 8;
      x[at] = detail::bits_float(detail::float_bits(x[at]) ^ (word << (31 - bit) & 0x80000000u));
    }
  });
  g.sync();
}

//! @brief Sums and differences of the coordinates whose numbers differ in bits First to Last-1, ascending. The group
//! synchronizes after each bit.
template <int First, int Last, class Group, std::size_t Size>
TERSUM_INLINE void butterflies(Group const& g, float (&x)[Size])
{
  constexpr int size = static_cast<int>(Size);
  for (int bit = First; bit < Last; ++bit) {
    g.each(size / 2, [&](int i) {
      int const low  = i & ((1 << bit) - 1);
      int const at   = (i - low) * 2 + low;
      int const pair = at + (1 << bit);
      float const a  = x[at];
      float const b  = x[pair];
      x[at]          = Group::add(a, b);
      x[pair]        = Group::subtract(a, b);
    });
    g.sync();
  }
}

//! @brief Random signs, then the Hadamard matrix, unnormalized: squared norms grow `Size` times.
//!
//! The order of the butterflies fixes the rounding and is part of the wire format: index bits 0, 1, 2, the two highest,
//! then 8 upwards, then 3 to 7.
template <class Group, std::size_t Size>
TERSUM_INLINE void hadamard_forward(Group const& g, float (&x)[Size], rotation_key const& key)
{
  constexpr int size = static_cast<int>(Size);
  constexpr int log  = detail::log2_exact(size);
  flip_signs(g, x, key);
  butterflies<0, 3>(g, x);
  butterflies<log - 2, log>(g, x);
  butterflies<8, log - 2>(g, x);
  butterflies<3, detail::minimum(8, log - 2)>(g, x);
}

//! @brief The inverse, unnormalized as well: bits 3 to 7, then 8 upwards, then 0, 1, 2 and the two highest, then signs.
template <class Group, std::size_t Size>
TERSUM_INLINE void hadamard_backward(Group const& g, float (&x)[Size], rotation_key const& key)
{
  constexpr int size = static_cast<int>(Size);
  constexpr int log  = detail::log2_exact(size);
  butterflies<3, detail::minimum(8, log - 2)>(g, x);
  butterflies<8, log - 2>(g, x);
  butterflies<0, 3>(g, x);
  butterflies<log - 2, log>(g, x);
  flip_signs(g, x, key);
}

}  // namespace tersum::inline v0
