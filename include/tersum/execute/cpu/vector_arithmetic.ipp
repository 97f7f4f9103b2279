// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arithmetic of vectors that compilers have no operator for.

#if TERSUM_SIMD_WIDTH == 4 && !defined(__FMA__) && !defined(__aarch64__)
//! @brief a * b + c with one rounding, where there is no such instruction: the exact product in double is added with
//! rounding to odd, after which rounding to float is exact (Boldo and Melquiond). Not inlined: it is long, and used often.
[[maybe_unused, gnu::noinline]] inline floats fma_in_double(floats a, floats b, floats c)
{
  typedef double doubles __attribute__((vector_size(TERSUM_SIMD_WIDTH * 8)));
  typedef std::int64_t longs __attribute__((vector_size(TERSUM_SIMD_WIDTH * 8)));
  doubles const product = __builtin_convertvector(a, doubles) * __builtin_convertvector(b, doubles);
  doubles const addend  = __builtin_convertvector(c, doubles);
  doubles const sum     = product + addend;
  doubles const part    = sum - product;
  doubles const lost    = (product - (sum - part)) + (addend - part);
  longs const bits      = (longs)sum;
  longs const inexact   = (longs)(lost != 0.0) & (longs)(lost == lost) & ((bits & 1) - 1);
  longs const away      = (longs)((lost > 0.0) == (sum > 0.0));
  longs const odd       = bits + (inexact & ((away & 2) - 1));
  return __builtin_convertvector((doubles)odd, floats);
}
#endif

//! @brief a * b + c with one rounding.
TERSUM_SIMD floats fma(floats a, floats b, floats c)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__FMA__) || defined(__aarch64__)
  floats sum;
  for (int lane = 0; lane < width; ++lane) {
    sum[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  }
  return sum;
#else
  return fma_in_double(a, b, c);
#endif
}

//! @brief 1.5 2^23 + Offset + round to nearest even(v * scale), as the bits of a float: an integer in the low bits.
template <int Offset>
TERSUM_SIMD words rounded_bits(floats v, float scale)
{
#if TERSUM_SIMD_WIDTH >= 8 || defined(__FMA__) || defined(__aarch64__)
  return to_bits(fma(v, broadcast(scale), broadcast(12582912.0f + Offset)));
#else
  // The product is exact in double; adding 1.5 2^52 rounds it to an integer.
  typedef double doubles __attribute__((vector_size(TERSUM_SIMD_WIDTH * 8)));
  typedef std::uint64_t longs __attribute__((vector_size(TERSUM_SIMD_WIDTH * 8)));
  doubles const product = __builtin_convertvector(v, doubles) * static_cast<double>(scale);
  return __builtin_convertvector((longs)(product + (6755399441055744.0 + Offset)), words) +
         0x4b400000u;
#endif
}

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
