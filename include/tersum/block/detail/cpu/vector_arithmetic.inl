// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arithmetic of vectors that compilers have no operator for.

#if TERSUM_SIMD_WIDTH == 4 && defined(__SSE2__) && !defined(__FMA__)
#define TERSUM_FMA_IN_DOUBLE 1
TERSUM_SIMD __m128d lower_doubles(floats v) { return _mm_cvtps_pd((__m128)v); }
TERSUM_SIMD __m128d upper_doubles(floats v)
{
  return _mm_cvtps_pd(_mm_movehl_ps((__m128)v, (__m128)v));
}

//! @brief The sum rounded to odd, after which rounding to float is exact (Boldo and Melquiond): towards zero, with the last
//! bit set where something was lost.
TERSUM_SIMD __m128d add_to_odd(__m128d a, __m128d b)
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

//! @brief a * b + c with one rounding, where there is no such instruction: products of floats are exact in double. Not
//! inlined: it is long, and used often.
[[maybe_unused, gnu::noinline]] inline floats fma_in_double(floats a, floats b, floats c)
{
  __m128d const low  = add_to_odd(_mm_mul_pd(lower_doubles(a), lower_doubles(b)), lower_doubles(c));
  __m128d const high = add_to_odd(_mm_mul_pd(upper_doubles(a), upper_doubles(b)), upper_doubles(c));
  return (floats)_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
#endif

//! @brief a * b + c with one rounding.
TERSUM_SIMD floats fma(floats a, floats b, floats c)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(TERSUM_FMA_IN_DOUBLE)
  // Rounding to double and then to float is rounding once, unless the double lies halfway between two floats, or is not
  // zero and less than a normal float.
  __m128d const low  = _mm_add_pd(_mm_mul_pd(lower_doubles(a), lower_doubles(b)), lower_doubles(c));
  __m128d const high = _mm_add_pd(_mm_mul_pd(upper_doubles(a), upper_doubles(b)), upper_doubles(c));
  auto const tails   = (integers)_mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), 0x88);
  auto const heads   = (integers)_mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), 0xdd);
  integers const halfway = (tails & 0x1fffffff) == 0x10000000;
  integers const size    = heads & 0x7fffffff;
  integers const tiny    = (size > 0) & (size < 0x38100000);
  if (_mm_movemask_ps((__m128)(halfway | tiny)) != 0) { return fma_in_double(a, b, c); }
  return (floats)_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
#else
  floats sum;
  for (int lane = 0; lane < width; ++lane) {
    sum[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  }
  return sum;
#endif
}

//! @brief The same for operands of few bits, of whose sums many lie halfway between two floats: every case is rounded right.
TERSUM_SIMD floats fma_of_few_bits(floats a, floats b, floats c)
{
#if defined(TERSUM_FMA_IN_DOUBLE)
  return fma_in_double(a, b, c);
#else
  return fma(a, b, c);
#endif
}

//! @brief 1.5 2^23 + Offset + round to nearest even(v * scale), as the bits of a float: an integer in the low bits.
template <int Offset>
TERSUM_SIMD words rounded_bits(floats v, float scale)
{
#if defined(TERSUM_FMA_IN_DOUBLE)
  // The product is exact in double; adding 1.5 2^52 rounds it to an integer.
  __m128d const one  = _mm_set1_pd(6755399441055744.0 + Offset);
  __m128d const by   = _mm_set1_pd(static_cast<double>(scale));
  __m128d const low  = _mm_add_pd(_mm_mul_pd(lower_doubles(v), by), one);
  __m128d const high = _mm_add_pd(_mm_mul_pd(upper_doubles(v), by), one);
  return (words)_mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), 0x88) + 0x4b400000u;
#else
  return to_bits(fma(v, broadcast(scale), broadcast(12582912.0f + Offset)));
#endif
}
#undef TERSUM_FMA_IN_DOUBLE

typedef std::uint64_t longs __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));

//! @brief The products of the lower halves of 64-bit lanes.
TERSUM_SIMD longs multiply_lower(longs a, std::uint32_t b)
{
#if TERSUM_SIMD_WIDTH == 16
  // The masked form, with every lane chosen: the plain one of g++ 12 warns of its own undefined operand.
  return (longs)_mm512_maskz_mul_epu32(0xff, (__m512i)a, _mm512_set1_epi32(static_cast<int>(b)));
#elif TERSUM_SIMD_WIDTH == 8
  return (longs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi32(static_cast<int>(b)));
#elif defined(__SSE2__)
  return (longs)_mm_mul_epu32((__m128i)a, _mm_set1_epi32(static_cast<int>(b)));
#else
  return (a & 0xffffffffu) * b;
#endif
}

//! @brief The lower halves of the 64-bit lanes of `evens`, between them those of `odds`.
TERSUM_SIMD words merge_lower(longs evens, longs odds)
{
#if TERSUM_SIMD_WIDTH == 16
  return (words)_mm512_mask_shuffle_epi32(
    (__m512i)evens, 0xaaaa, (__m512i)odds, static_cast<_MM_PERM_ENUM>(0xa0));
#else
  return (words)((evens & 0xffffffffu) | odds << 32);
#endif
}

//! @brief Philox4x32 in every lane of several vectors; lanes differ in the first counter word only, which out[.][0] brings.
//! Even and odd lanes take their rounds apart, each in the lower halves of 64-bit lanes; the upper halves are undefined.
template <int Rounds, int Draws>
TERSUM_SIMD void philox(philox_block const& counter, std::uint64_t key, words (&out)[Draws][4])
{
  using constants = philox_constants;
  longs k0        = (longs)broadcast(static_cast<std::uint32_t>(key));
  longs k1        = (longs)broadcast(static_cast<std::uint32_t>(key >> 32));
  longs state[Draws][2][4];
  TERSUM_UNROLL
  for (int d = 0; d < Draws; ++d) {
    TERSUM_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      state[d][odd][0] = (longs)out[d][0] >> (32 * odd);
      TERSUM_UNROLL
      for (int w = 1; w < 4; ++w) { state[d][odd][w] = (longs)broadcast(counter.word[w]); }
    }
  }
  TERSUM_UNROLL
  for (int round = 0; round < Rounds; ++round) {
    TERSUM_UNROLL
    for (int d = 0; d < Draws; ++d) {
      TERSUM_UNROLL
      for (int odd = 0; odd < 2; ++odd) {
        longs(&c)[4]   = state[d][odd];
        longs const p0 = multiply_lower(c[0], constants::multiplier_0);
        longs const p1 = multiply_lower(c[2], constants::multiplier_1);
        c[0]           = (p1 >> 32) ^ c[1] ^ k0;
        c[1]           = p1;
        c[2]           = (p0 >> 32) ^ c[3] ^ k1;
        c[3]           = p0;
      }
    }
    k0 = (longs)((words)k0 + constants::weyl_0);
    k1 = (longs)((words)k1 + constants::weyl_1);
  }
  TERSUM_UNROLL
  for (int d = 0; d < Draws; ++d) {
    TERSUM_UNROLL
    for (int w = 0; w < 4; ++w) { out[d][w] = merge_lower(state[d][0][w], state[d][1][w]); }
  }
}

//! @brief table[number] for every lane, of a table of `Count` entries. Small tables are permuted in registers.
template <int Count>
TERSUM_SIMD floats look_up(float const* table, words number)
{
  static_assert((Count & (Count - 1)) == 0);
#if TERSUM_SIMD_WIDTH >= 8
  if constexpr (Count <= width) {
    floats entries{};
    __builtin_memcpy(&entries, table, Count * sizeof(float));
#if TERSUM_SIMD_WIDTH == 16
    return (floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)number, (__m512)entries);
#else
    return (floats)_mm256_permutevar8x32_ps((__m256)entries, (__m256i)number);
#endif
#if TERSUM_SIMD_WIDTH == 16
  } else if constexpr (Count == 2 * width) {
    return (floats)_mm512_permutex2var_ps(
      (__m512)load(table), (__m512i)number, (__m512)load(table + width));
#endif
  } else if constexpr (Count <= 8 * width) {
    floats const low  = look_up<Count / 2>(table, number);
    floats const high = look_up<Count / 2>(table + Count / 2, number);
    return (number & static_cast<std::uint32_t>(Count / 2)) != 0 ? high : low;
  } else {
#if TERSUM_SIMD_WIDTH == 16
    return (floats)_mm512_mask_i32gather_ps(
      _mm512_setzero_ps(), 0xffff, (__m512i)number, table, sizeof(float));
#else
    return (floats)_mm256_i32gather_ps(table, (__m256i)number, sizeof(float));
#endif
  }
#else
  floats found;
  TERSUM_UNROLL
  for (int lane = 0; lane < width; ++lane) { found[lane] = table[number[lane]]; }
  return found;
#endif
}
