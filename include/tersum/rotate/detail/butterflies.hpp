// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Butterflies and signs of the values of a thread: kernel body parts.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! @brief A float with the other sign if bit i of `signs` is set. It is written as a condition: nvcc moves a byte of a word
//! to predicates in one instruction, where a shift takes one for each bit.
[[nodiscard]] TERSUM_INLINE constexpr float flip_sign(float value,
                                                      std::uint32_t signs,
                                                      int i) noexcept
{
  return (signs & (1u << i)) != 0 ? -value : value;
}

//! @brief Whether one instruction adds two floats, as from sm_100 on.
template <class Context>
concept adds_two = Context::adds_two;

//! @brief Butterflies over the bits First .. Last-1 of the index of an array, ascending.
//!
//! Where one instruction adds two floats these are neighbours, i and i + 1, in every level but the first, which makes both
//! results of one butterfly: it takes two values from anywhere and leaves them side by side.
template <int First, int Last, class Context, std::size_t Size>
TERSUM_BODY void register_butterflies(Context const&, float (&v)[Size])
{
  TERSUM_UNROLL
  for (int level = First; level < Last; ++level) {
    TERSUM_UNROLL
    for (int i = 0; i < static_cast<int>(Size); ++i) {
      int const j = i | 1 << level;
      if (i == j) { continue; }
      if constexpr (adds_two<Context>) {
        if (level == 0) {
          Context::butterfly(v[i], v[j]);
        } else if (i % 2 == 0) {
          Context::two_butterflies(v[i], v[i + 1], v[j], v[j + 1]);
        }
      } else {
        float const a = v[i];
        float const b = v[j];
        v[i]          = Context::add(a, b);
        v[j]          = Context::subtract(a, b);
      }
    }
  }
}

}  // namespace tersum::inline v0::detail
