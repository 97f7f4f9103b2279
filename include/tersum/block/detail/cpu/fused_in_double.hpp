// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fused multiply-adds of four floats on x86 without an instruction for them. Products of floats are exact in double.

#pragma once

#if defined(__SSE2__) && !defined(__FMA__)

#include <tersum/config.hpp>

#include <immintrin.h>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Two doubles of each four floats, the lower ones and the upper ones.
struct four_doubles {
  __m128d low, high;

  TERSUM_HOST_INLINE static four_doubles of(__m128 v)
  {
    return {_mm_cvtps_pd(v), _mm_cvtps_pd(_mm_movehl_ps(v, v))};
  }
  TERSUM_HOST_INLINE static four_doubles product(__m128 a, __m128 b)
  {
    four_doubles const x = of(a), y = of(b);
    return {_mm_mul_pd(x.low, y.low), _mm_mul_pd(x.high, y.high)};
  }
  //! The lower (`Words` 0x88) or the upper (0xdd) words of the doubles.
  template <int Words>
  [[nodiscard]] TERSUM_HOST_INLINE __m128 halves() const
  {
    return _mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), Words);
  }
  [[nodiscard]] TERSUM_HOST_INLINE __m128 to_floats() const
  {
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
  }
};

//! @brief The sum rounded to odd, after which rounding to float is exact (Boldo and Melquiond): towards zero, with the last
//! bit set where something was lost.
TERSUM_HOST_INLINE __m128d add_to_odd(__m128d a, __m128d b)
{
  __m128d const sum  = _mm_add_pd(a, b);
  __m128d const part = _mm_sub_pd(sum, a);
  __m128d const lost = _mm_add_pd(_mm_sub_pd(a, _mm_sub_pd(sum, part)), _mm_sub_pd(b, part));
  __m128d const zero = _mm_setzero_pd();
  // Both comparisons are false where a value is not finite.
  __m128i const inexact =
    _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(lost, zero), _mm_cmpgt_pd(lost, zero)));
  __m128i const differ    = _mm_srai_epi32(_mm_castpd_si128(_mm_xor_pd(lost, sum)), 31);
  __m128i const too_far   = _mm_and_si128(_mm_shuffle_epi32(differ, 0xf5), inexact);
  __m128i const truncated = _mm_add_epi64(_mm_castpd_si128(sum), too_far);
  return _mm_castsi128_pd(_mm_or_si128(truncated, _mm_srli_epi64(inexact, 63)));
}

//! @brief a * b + c with one rounding, every case of it. Not inlined: it is long, and used often.
[[gnu::noinline]] inline __m128 fuse_few_bits_in_double(__m128 a, __m128 b, __m128 c)
{
  four_doubles const product = four_doubles::product(a, b), added = four_doubles::of(c);
  return four_doubles{add_to_odd(product.low, added.low), add_to_odd(product.high, added.high)}
    .to_floats();
}

//! @brief a * b + c with one rounding. Rounding to double and then to float is rounding once, unless the double lies halfway between
//! two floats, or is not zero and less than a normal float.
TERSUM_HOST_INLINE __m128 fuse_in_double(__m128 a, __m128 b, __m128 c)
{
  typedef std::int32_t integers __attribute__((vector_size(16)));
  four_doubles const product = four_doubles::product(a, b), added = four_doubles::of(c);
  four_doubles const sum{_mm_add_pd(product.low, added.low), _mm_add_pd(product.high, added.high)};
  auto const tails       = (integers)sum.halves<0x88>();
  integers const halfway = (tails & 0x1fffffff) == 0x10000000;
  integers const size    = (integers)sum.halves<0xdd>() & 0x7fffffff;
  integers const tiny    = (size > 0) & (size < 0x38100000);
  if (_mm_movemask_ps((__m128)(halfway | tiny)) != 0) { return fuse_few_bits_in_double(a, b, c); }
  return sum.to_floats();
}

//! @brief a * b + c of operands that are not negative, right but for its lowest `bits`. A product and a sum, each rounded, are at most an
//! ulp off. That changes a higher bit only beside a number whose lowest bits are zeros, where the exact sum is computed.
TERSUM_HOST_INLINE __m128 fuse_above(__m128 a, __m128 b, __m128 c, int bits)
{
  __m128 const sum   = _mm_add_ps(_mm_mul_ps(a, b), c);
  __m128i const past = _mm_add_epi32(_mm_castps_si128(sum), _mm_set1_epi32(2));
  __m128i const near = _mm_and_si128(past, _mm_set1_epi32((1 << bits) - 4));
  __m128i const end  = _mm_cmpeq_epi32(near, _mm_setzero_si128());
  return _mm_movemask_epi8(end) == 0 ? sum : fuse_few_bits_in_double(a, b, c);
}

//! @brief offset + round to nearest even(v * scale), as the bits of integers: the product is exact, and adding 1.5 2^52 rounds it.
TERSUM_HOST_INLINE __m128 round_in_double(__m128 v, float scale, int offset)
{
  __m128d const one    = _mm_set1_pd(6755399441055744.0 + offset);
  __m128d const by     = _mm_set1_pd(static_cast<double>(scale));
  four_doubles const x = four_doubles::of(v);
  return four_doubles{_mm_add_pd(_mm_mul_pd(x.low, by), one),
                      _mm_add_pd(_mm_mul_pd(x.high, by), one)}
    .halves<0x88>();
}

}  // namespace tersum::inline v0::detail

#endif
