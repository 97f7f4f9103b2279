// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Values within a bound at either sign, of which NaN stays NaN.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::detail {

//! @brief The value, or what is nearest to it of -bound and bound. NaN stays NaN.
[[nodiscard]] TERSUM_INLINE float bounded(float value, float bound)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860
  float result;
  asm("min.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(result) : "f"(value), "f"(bound));
  return result;
#else
  float const below = value > bound ? bound : value;
  return below < -bound ? -bound : below;
#endif
}

//! @brief The same of two elements of 16 bits in a word; `bounds` is the bound twice.
template <gradient_element Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t bounded_pair(std::uint32_t word, std::uint32_t bounds)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860
  std::uint32_t result;
  if constexpr (std::is_same_v<Element, half>) {
    asm("min.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(result) : "r"(word), "r"(bounds));
  } else {
    asm("min.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(word), "r"(bounds));
  }
  return result;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint32_t result;
  if constexpr (std::is_same_v<Element, half>) {
    asm("{ .reg .b32 t; min.NaN.f16x2 t, %1, %2; max.NaN.f16x2 %0, t, %3; }"
        : "=r"(result)
        : "r"(word), "r"(bounds), "r"(bounds | 0x80008000u));
  } else {
    asm("{ .reg .b32 t; min.NaN.bf16x2 t, %1, %2; max.NaN.bf16x2 %0, t, %3; }"
        : "=r"(result)
        : "r"(word), "r"(bounds), "r"(bounds | 0x80008000u));
  }
  return result;
#else
  // Magnitudes of elements are ordered as their bits; those above infinity are NaN.
  constexpr std::uint32_t infinity = std::is_same_v<Element, half> ? 0x7c00u : 0x7f80u;
  auto const within                = [bound = bounds & 0xffffu](std::uint32_t bits) {
    std::uint32_t const size = bits & 0x7fffu;
    return size > bound && size <= infinity ? (bits & 0x8000u) | bound : bits;
  };
  return within(word & 0xffffu) | within(word >> 16) << 16;
#endif
}

}  // namespace tersum::inline v0::detail
