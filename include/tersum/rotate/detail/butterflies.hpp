// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Butterflies and signs of the 32 values of a thread: kernel body parts.

#pragma once

#include <tersum/config.hpp>

#include <cstdint>

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
inline constexpr bool adds_two = false;

template <class Context>
requires requires { Context::adds_two; }
inline constexpr bool adds_two<Context> = Context::adds_two;

//! @brief Butterflies over the bits First .. Last-1 of the index of an array of 32, ascending.
//! @tparam Paired  The bit in which values differ that one instruction adds, where the context does so. They are in
//!                 neighbouring registers then; the level of this bit adds one by one.
template <int First, int Last, int Paired = 0, class Context>
TERSUM_BODY void butterflies(Context const&, float (&v)[32])
{
  TERSUM_UNROLL
  for (int level = First; level < Last; ++level) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      if (adds_two<Context> && level != Paired) {
        if ((i >> level & 1) == 0 && (i >> Paired & 1) == 0) {
          int const j = i | 1 << level, next = 1 << Paired;
          Context::two_butterflies(v[i], v[i | next], v[j], v[j | next]);
        }
      } else if ((i >> level & 1) == 0) {
        float const a     = v[i];
        float const b     = v[i | 1 << level];
        v[i]              = Context::add(a, b);
        v[i | 1 << level] = Context::subtract(a, b);
      }
    }
  }
}

}  // namespace tersum::inline v0::detail
