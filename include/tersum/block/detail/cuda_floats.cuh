// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arithmetic that is never contracted, and conversions between float and the elements of a gradient, as CUDA's
//! intrinsics: a part of `cuda_context`.

#pragma once

#include <tersum/types.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

struct cuda_floats {
  static __device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ float subtract(float a, float b) { return __fsub_rn(a, b); }
  static __device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ float fma(float a, float b, float c)
  {
    return __fmaf_rn(a, b, c);
  }
  static __device__ __forceinline__ double fma(double a, double b, double c)
  {
    return __fma_rn(a, b, c);
  }
  static __device__ __forceinline__ float divide(float a, float b) { return __fdiv_rn(a, b); }
  static __device__ __forceinline__ float square_root(float a) { return __fsqrt_rn(a); }

  //! The value, or what is nearest to it of -bound and bound. NaN becomes -bound.
  static __device__ __forceinline__ float clamp(float a, float bound)
  {
    return fminf(fmaxf(a, -bound), bound);
  }

  static __device__ __forceinline__ std::uint32_t bits(float a) { return __float_as_uint(a); }
  static __device__ __forceinline__ float from_bits(std::uint32_t a) { return __uint_as_float(a); }

  static __device__ __forceinline__ float value(float a) { return a; }
  static __device__ __forceinline__ float value(half a)
  {
    return __half2float(__ushort_as_half(a.bits));
  }
  static __device__ __forceinline__ float value(bfloat16 a)
  {
    return __uint_as_float(static_cast<std::uint32_t>(a.bits) << 16);
  }

  template <class Element>
  static __device__ __forceinline__ Element element(float a)
  {
    if constexpr (std::is_same_v<Element, half>) {
      return {__half_as_ushort(__float2half_rn(a))};
    } else if constexpr (std::is_same_v<Element, bfloat16>) {
      return {__bfloat16_as_ushort(__float2bfloat16_rn(a))};
    } else {
      return a;
    }
  }

  //! Rounds a mean: to the largest half where the half would be infinite.
  template <class Element>
  static __device__ __forceinline__ Element finite_element(float a)
  {
    if constexpr (std::is_same_v<Element, half>) {
      std::uint16_t bits;
      asm("cvt.rn.satfinite.f16.f32 %0, %1;" : "=h"(bits) : "f"(a));
      return {bits};
    } else {
      return element<Element>(a);
    }
  }

  //! Two 16-bit elements in one word, the first in the low half.
  template <class Element>
  static __device__ __forceinline__ std::uint32_t pack(float first, float second)
  {
    std::uint32_t word;
    if constexpr (std::is_same_v<Element, half>) {
      __half2 const both = __floats2half2_rn(first, second);
      memcpy(&word, &both, sizeof(word));
    } else {
      __nv_bfloat162 const both = __floats2bfloat162_rn(first, second);
      memcpy(&word, &both, sizeof(word));
    }
    return word;
  }

  //! Sums of two pairs of 16-bit elements. Before sm_90 there is no addition of bfloat16s, but a multiply-add.
  template <class Element>
  static __device__ __forceinline__ std::uint32_t add_pair(std::uint32_t a, std::uint32_t b)
  {
    std::uint32_t sum;
    if constexpr (std::is_same_v<Element, half>) {
      asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
      asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));
#else
      asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
#endif
    }
    return sum;
  }

  //! The same for two means in one word, the first in the low half.
  template <class Element>
  static __device__ __forceinline__ std::uint32_t pack_finite(float first, float second)
  {
    if constexpr (std::is_same_v<Element, half>) {
      std::uint32_t word;
      asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
      return word;
    } else {
      return pack<Element>(first, second);
    }
  }
};

}  // namespace tersum::inline v0::detail
