// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arithmetic that is never contracted, and conversions between float and the elements of a gradient, as CUDA's
//! intrinsics: a part of `cuda_context`.

#pragma once

#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace tersum::inline v0::detail {

struct cuda_floats {
  static __device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ float subtract(float a, float b) { return __fsub_rn(a, b); }
  static __device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ float fma(float a, float b, float c)
  {
    return __fmaf_rn(a, b, c);
  }

  //! @name Two at once, each as it would be alone
  //! @{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
  static constexpr bool adds_two = true;
#endif
  //! (a, b) becomes (a + b, a - b).
  static __device__ __forceinline__ void two_butterflies(float& a0, float& a1, float& b0, float& b1)
  {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    asm("{ .reg .b64 a, b, sum, less; mov.b64 a, {%0, %1}; mov.b64 b, {%2, %3};"
        " add.rn.f32x2 sum, a, b; sub.rn.f32x2 less, a, b;"
        " mov.b64 {%0, %1}, sum; mov.b64 {%2, %3}, less; }"
        : "+f"(a0), "+f"(a1), "+f"(b0), "+f"(b1));
#else
    float const less0 = subtract(a0, b0), less1 = subtract(a1, b1);
    a0               = add(a0, b0);
    a1               = add(a1, b1);
    b0               = less0;
    b1               = less1;
#endif
  }
  //! (a, b) becomes (a + b, a - b): as 1 b + a and -1 b + a, which round alike. One instruction takes a and b from anywhere;
  //! the pair of factors is loaded, since ptxas would make one that it knows anew for every use.
  static __device__ __forceinline__ void butterfly(float& a, float& b)
  {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    static __constant__ std::uint64_t one_and_minus_one = 0xbf8000003f800000u;
    asm("{ .reg .b64 a, b, c; mov.b64 a, {%0, %0}; mov.b64 b, {%1, %1}; ld.const.b64 c, [%2];"
        " fma.rn.f32x2 a, b, c, a; mov.b64 {%0, %1}, a; }"
        : "+f"(a), "+f"(b)
        : "l"(__cvta_generic_to_constant(&one_and_minus_one)));
#else
    float const less = subtract(a, b);
    a                = add(a, b);
    b                = less;
#endif
  }
  //! a b + c.
  static __device__ __forceinline__ void two_fma(float& a0, float& a1, float b, float c)
  {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    asm("{ .reg .b64 a, b, c; mov.b64 a, {%0, %1}; mov.b64 b, {%2, %2}; mov.b64 c, {%3, %3};"
        " fma.rn.f32x2 a, a, b, c; mov.b64 {%0, %1}, a; }"
        : "+f"(a0), "+f"(a1)
        : "f"(b), "f"(c));
#else
    a0               = fma(a0, b, c);
    a1               = fma(a1, b, c);
#endif
  }
  //! @}

  static __device__ __forceinline__ double fma(double a, double b, double c)
  {
    return __fma_rn(a, b, c);
  }
  static __device__ __forceinline__ float divide(float a, float b) { return __fdiv_rn(a, b); }
  static __device__ __forceinline__ float square_root(float a) { return __fsqrt_rn(a); }

  //! The square root of `a`, which zero has instead of the number `about` it that has an inverse.
  static __device__ __forceinline__ float refined_root(float a, float about)
  {
    float guess;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(about));
    float const root = __fmul_rn(a, guess);
    return __fmaf_rn(__fmaf_rn(-root, root, a), __fmul_rn(guess, 0.5f), root);
  }

  //! @name The same of moderate values
  //! The steps that nvcc itself takes where nothing is close to overflow or underflow; it adds a hundred instructions for the rest.
  //! @{
  static __device__ __forceinline__ float divide_moderate(float a, float b)
  {
    float guess;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(b));
    float const inverse  = __fmaf_rn(guess, __fmaf_rn(-b, guess, 1.0f), guess);
    float const quotient = __fmul_rn(a, inverse);
    return __fmaf_rn(inverse, __fmaf_rn(-b, quotient, a), quotient);
  }
  static __device__ __forceinline__ float square_root_moderate(float a)
  {
    return refined_root(a, a);
  }
  static __device__ __forceinline__ float square_root_from_zero(float a)
  {
    return refined_root(a, ::fmaxf(a, 0x1p-100f));
  }
  //! @}

  static __device__ __forceinline__ float max_magnitude(float most, float a)
  {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(most), "f"(::fabsf(a)));
    return larger;
  }

  static __device__ __forceinline__ float fma_within_one(float a, float b, float c)
  {
    float sum;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(a), "f"(b), "f"(c));
    return sum;
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
      return half::from_bits(__half_as_ushort(__float2half_rn(a)));
    } else if constexpr (std::is_same_v<Element, bfloat16>) {
      return bfloat16::from_bits(__bfloat16_as_ushort(__float2bfloat16_rn(a)));
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
      return half::from_bits(bits);
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

  //! The smaller of two unsigned numbers of 16 bits, twice.
  static __device__ __forceinline__ std::uint32_t min_pair(std::uint32_t a, std::uint32_t b)
  {
    return __vminu2(a, b);
  }

  //! All ones in a half of a word if the first, in the low half, or the second float has a minus.
  static __device__ __forceinline__ std::uint32_t minus_pair(float first, float second)
  {
    std::uint32_t word;
    asm("prmt.b32 %0, %1, %2, 0xffbb;" : "=r"(word) : "f"(first), "f"(second));
    return word;
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
