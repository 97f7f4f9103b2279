// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm of a chunk in memory, written once for all groups.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief The sum of squares of a chunk: 256 accumulators (128 of a chunk of 128), chained by fused multiply-adds over the
//! chunk, then added pairwise from the lowest index bit up. That tree is part of the wire format.
//! @param scratch  Overwritten.
template <class Group, std::size_t Size>
[[nodiscard]] TERSUM_INLINE float square_norm(Group const& g,
                                              float const (&x)[Size],
                                              float (&scratch)[Size])
{
  constexpr int size = static_cast<int>(Size);
  constexpr int sums = detail::minimum(size, 256);
  g.each(sums, [&](int at) {
    float sum = 0.0f;
    for (int i = at; i < size; i += sums) { sum = Group::fma(x[i], x[i], sum); }
    scratch[at] = sum;
  });
  g.sync();
  for (int width = 1; width < sums; width *= 2) {
    g.each(sums / (2 * width), [&](int pair) {
      float& to = scratch[2 * width * pair];
      to        = Group::add(to, scratch[2 * width * pair + width]);
    });
    g.sync();
  }
  float const norm = scratch[0];
  g.sync();
  return norm;
}

}  // namespace tersum::inline v0
