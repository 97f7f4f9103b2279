// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors of one width for one instruction set, from compiler vectors. Included once for each by vector_kernels.hpp,
//! which sets TERSUM_SIMD_WIDTH (floats in a vector) and TERSUM_SIMD (the function attributes).

inline constexpr int width = TERSUM_SIMD_WIDTH;

typedef float floats __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));
typedef std::uint32_t words __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));
typedef std::int32_t integers __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));

TERSUM_SIMD floats load(float const* from)
{
  floats v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

TERSUM_SIMD void store(float* to, floats v) { __builtin_memcpy(to, &v, sizeof(v)); }

TERSUM_SIMD void store(std::uint32_t* to, words v) { __builtin_memcpy(to, &v, sizeof(v)); }

TERSUM_SIMD words load_words(std::uint32_t const* from)
{
  words v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

TERSUM_SIMD floats from_bits(words v) { return (floats)v; }

TERSUM_SIMD words to_bits(floats v) { return (words)v; }

//! The numbers 0 .. width-1.
TERSUM_SIMD words lane_index()
{
#if TERSUM_SIMD_WIDTH == 4
  return words{0, 1, 2, 3};
#elif TERSUM_SIMD_WIDTH == 8
  return words{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return words{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif
}

//! nvcc 13.0's front end crashes on a scalar next to a vector of signed integers; so constants come through here.
TERSUM_SIMD words broadcast(std::uint32_t value) { return value - words{}; }

TERSUM_SIMD floats broadcast(float value) { return from_bits(broadcast(float_bits(value))); }

//! @name Shuffles
//! Index lists are spelled out: nvcc's front end loses the expansion of a parameter pack in a builtin.
//! @{
#if TERSUM_SIMD_WIDTH == 4
#define TERSUM_EVEN        0, 2, 4, 6
#define TERSUM_ODD         1, 3, 5, 7
#define TERSUM_LOW_PAIRS   0, 4, 1, 5
#define TERSUM_HIGH_PAIRS  2, 6, 3, 7
#define TERSUM_LOW_HALVES  0, 1, 4, 5
#define TERSUM_HIGH_HALVES 2, 3, 6, 7
#define TERSUM_SWAP_1      1, 0, 3, 2
#define TERSUM_SWAP_2      2, 3, 0, 1
#define TERSUM_SWAP_4      0, 1, 2, 3
#define TERSUM_SWAP_8      0, 1, 2, 3
#elif TERSUM_SIMD_WIDTH == 8
#define TERSUM_EVEN        0, 2, 4, 6, 8, 10, 12, 14
#define TERSUM_ODD         1, 3, 5, 7, 9, 11, 13, 15
#define TERSUM_LOW_PAIRS   0, 8, 1, 9, 2, 10, 3, 11
#define TERSUM_HIGH_PAIRS  4, 12, 5, 13, 6, 14, 7, 15
#define TERSUM_LOW_HALVES  0, 1, 2, 3, 8, 9, 10, 11
#define TERSUM_HIGH_HALVES 4, 5, 6, 7, 12, 13, 14, 15
#define TERSUM_SWAP_1      1, 0, 3, 2, 5, 4, 7, 6
#define TERSUM_SWAP_2      2, 3, 0, 1, 6, 7, 4, 5
#define TERSUM_SWAP_4      4, 5, 6, 7, 0, 1, 2, 3
#define TERSUM_SWAP_8      0, 1, 2, 3, 4, 5, 6, 7
#elif TERSUM_SIMD_WIDTH == 16
#define TERSUM_EVEN        0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define TERSUM_ODD         1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define TERSUM_LOW_PAIRS   0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define TERSUM_HIGH_PAIRS  8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define TERSUM_LOW_HALVES  0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define TERSUM_HIGH_HALVES 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define TERSUM_SWAP_1      1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define TERSUM_SWAP_2      2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13
#define TERSUM_SWAP_4      4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11
#define TERSUM_SWAP_8      8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7
#endif

//! Lanes whose numbers differ by Distance change places.
template <int Distance>
TERSUM_SIMD floats exchange(floats v)
{
  static_assert(Distance < width &&
                (Distance == 1 || Distance == 2 || Distance == 4 || Distance == 8));
  if constexpr (Distance == 1) { return __builtin_shufflevector(v, v, TERSUM_SWAP_1); }
  if constexpr (Distance == 2) { return __builtin_shufflevector(v, v, TERSUM_SWAP_2); }
  if constexpr (Distance == 4) { return __builtin_shufflevector(v, v, TERSUM_SWAP_4); }
  return __builtin_shufflevector(v, v, TERSUM_SWAP_8);
}

//! Elements 0, 2, 4 .. of a followed by b.
template <class Vector>
TERSUM_SIMD Vector even(Vector a, Vector b)
{
  return __builtin_shufflevector(a, b, TERSUM_EVEN);
}

//! Elements 1, 3, 5 .. of a followed by b.
template <class Vector>
TERSUM_SIMD Vector odd(Vector a, Vector b)
{
  return __builtin_shufflevector(a, b, TERSUM_ODD);
}

//! a and b alternating: their first halves when `High` is 0, their second halves when it is 1.
template <int High, class Vector>
TERSUM_SIMD Vector interleave(Vector a, Vector b)
{
  if constexpr (High == 0) { return __builtin_shufflevector(a, b, TERSUM_LOW_PAIRS); }
  return __builtin_shufflevector(a, b, TERSUM_HIGH_PAIRS);
}

//! One half of a followed by the same half of b.
template <int High, class Vector>
TERSUM_SIMD Vector join_halves(Vector a, Vector b)
{
  if constexpr (High == 0) { return __builtin_shufflevector(a, b, TERSUM_LOW_HALVES); }
  return __builtin_shufflevector(a, b, TERSUM_HIGH_HALVES);
}

#undef TERSUM_EVEN
#undef TERSUM_ODD
#undef TERSUM_LOW_PAIRS
#undef TERSUM_HIGH_PAIRS
#undef TERSUM_LOW_HALVES
#undef TERSUM_HIGH_HALVES
#undef TERSUM_SWAP_1
#undef TERSUM_SWAP_2
#undef TERSUM_SWAP_4
#undef TERSUM_SWAP_8
//! @}

//! @brief a * b + c with one rounding. Without the instruction, the exact product in double is added with rounding to
//! odd, after which rounding to float is exact (Boldo and Melquiond).
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
  typedef double doubles __attribute__((vector_size(TERSUM_SIMD_WIDTH * 8)));
  typedef std::int64_t longs __attribute__((vector_size(TERSUM_SIMD_WIDTH * 8)));
  doubles const product = __builtin_convertvector(a, doubles) * __builtin_convertvector(b, doubles);
  doubles const addend  = __builtin_convertvector(c, doubles);
  doubles const sum     = product + addend;
  doubles const part    = sum - product;
  doubles const lost    = (product - (sum - part)) + (addend - part);
  longs const bits      = (longs)sum;
  longs const inexact   = (longs)(lost != 0.0) & (longs)(lost == lost) & (longs)((bits & 1) == 0);
  longs const away      = (longs)((lost > 0.0) == (sum > 0.0));
  longs const odd       = bits + (inexact & ((away & 2) - 1));
  return __builtin_convertvector((doubles)odd, floats);
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

//! @brief The two halves of the products of 32-bit words.
TERSUM_SIMD void multiply_wide(words a, std::uint32_t b, words& high, words& low)
{
#if TERSUM_SIMD_WIDTH == 16
  // The masked forms, with every lane chosen: the plain ones of g++ 12 warn of their own undefined operands.
  typedef std::uint64_t longs __attribute__((vector_size(64)));
  __m512i const factor = _mm512_set1_epi32(static_cast<int>(b));
  __m512i const evens  = _mm512_maskz_mul_epu32(0xff, (__m512i)a, factor);
  __m512i const odds   = _mm512_maskz_mul_epu32(0xff, (__m512i)((longs)a >> 32), factor);
  high = (words)_mm512_mask_blend_epi32(0xaaaa, (__m512i)((longs)evens >> 32), odds);
  low  = (words)_mm512_mask_blend_epi32(0xaaaa, evens, (__m512i)((longs)odds << 32));
#elif TERSUM_SIMD_WIDTH == 8
  __m256i const factor = _mm256_set1_epi32(static_cast<int>(b));
  __m256i const evens  = _mm256_mul_epu32((__m256i)a, factor);
  __m256i const odds   = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
  high                 = (words)_mm256_blend_epi32(_mm256_srli_epi64(evens, 32), odds, 0xaa);
  low                  = (words)_mm256_blend_epi32(evens, _mm256_slli_epi64(odds, 32), 0xaa);
#elif defined(__SSE2__)
  __m128i const factor = _mm_set1_epi32(static_cast<int>(b));
  __m128i const mask   = _mm_set1_epi64x(0xffffffff);
  __m128i const evens  = _mm_mul_epu32((__m128i)a, factor);
  __m128i const odds   = _mm_mul_epu32(_mm_srli_epi64((__m128i)a, 32), factor);
  high = (words)_mm_or_si128(_mm_srli_epi64(evens, 32), _mm_andnot_si128(mask, odds));
  low  = (words)_mm_or_si128(_mm_and_si128(mask, evens), _mm_slli_epi64(odds, 32));
#else
  for (int lane = 0; lane < width; ++lane) {
    std::uint64_t const product = static_cast<std::uint64_t>(a[lane]) * b;
    high[lane]                  = static_cast<std::uint32_t>(product >> 32);
    low[lane]                   = static_cast<std::uint32_t>(product);
  }
#endif
}

//! @brief Philox4x32 in every lane of several vectors; lanes differ in the first counter word only, which out[.][0] brings.
template <int Rounds, int Draws>
TERSUM_SIMD void philox(philox_block const& counter, std::uint64_t key, words (&out)[Draws][4])
{
  using constants = philox_constants;
  words k0        = broadcast(static_cast<std::uint32_t>(key));
  words k1        = broadcast(static_cast<std::uint32_t>(key >> 32));
  TERSUM_UNROLL
  for (int d = 0; d < Draws; ++d) {
    TERSUM_UNROLL
    for (int w = 1; w < 4; ++w) { out[d][w] = broadcast(counter.word[w]); }
  }
  TERSUM_UNROLL
  for (int round = 0; round < Rounds; ++round) {
    TERSUM_UNROLL
    for (int d = 0; d < Draws; ++d) {
      words high0, low0, high1, low1;
      multiply_wide(out[d][0], constants::multiplier_0, high0, low0);
      multiply_wide(out[d][2], constants::multiplier_1, high1, low1);
      out[d][0] = high1 ^ out[d][1] ^ k0;
      out[d][1] = low1;
      out[d][2] = high0 ^ out[d][3] ^ k1;
      out[d][3] = low0;
    }
    k0 += constants::weyl_0;
    k1 += constants::weyl_1;
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

//! @name Gradient elements
//! @{
TERSUM_SIMD floats load_values(float const* from) { return load(from); }

TERSUM_SIMD floats load_values(bfloat16 const* from)
{
  typedef std::uint16_t shorts __attribute__((vector_size(TERSUM_SIMD_WIDTH * 2)));
  shorts v;
  __builtin_memcpy(&v, from, sizeof(v));
  return from_bits(__builtin_convertvector(v, words) << 16);
}

//! NaNs as `to_float` makes them of a half.
TERSUM_SIMD floats quiet(floats v)
{
  words const nan = (words)((to_bits(v) & 0x7fffffffu) > 0x7f800000u);
  return from_bits((to_bits(v) | nan) & ~(nan & 0x80000000u));
}

TERSUM_SIMD floats load_values(half const* from)
{
#if TERSUM_SIMD_WIDTH == 16
  return quiet((floats)_mm512_maskz_cvtph_ps(
    0xffff, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from))));
#elif TERSUM_SIMD_WIDTH == 8
  return quiet((floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from))));
#else
  floats v;
  for (int lane = 0; lane < width; ++lane) { v[lane] = to_float(from[lane]); }
  return v;
#endif
}

TERSUM_SIMD void store_values(float* to, floats v) { store(to, v); }

TERSUM_SIMD void store_values(bfloat16* to, floats v)
{
  typedef std::uint16_t shorts __attribute__((vector_size(TERSUM_SIMD_WIDTH * 2)));
  words const bits    = to_bits(v);
  words const rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  words const nan     = (words)((bits & 0x7fffffffu) > 0x7f800000u);
  shorts const out    = __builtin_convertvector((rounded & ~nan) | (nan & 0x7fffu), shorts);
  __builtin_memcpy(to, &out, sizeof(out));
}

TERSUM_SIMD void store_values(half* to, floats v)
{
#if TERSUM_SIMD_WIDTH >= 8
  words const nan    = (words)((to_bits(v) & 0x7fffffffu) > 0x7f800000u);
  floats const quiet = from_bits(to_bits(v) | nan);  // all ones: the low bits survive
#if TERSUM_SIMD_WIDTH == 16
  __m256i const out =
    _mm512_maskz_cvtps_ph(0xffff, (__m512)from_bits(to_bits(quiet) & ~(nan & 0x80000000u)), 0);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), out);
#else
  __m128i const out = _mm256_cvtps_ph((__m256)from_bits(to_bits(quiet) & ~(nan & 0x80000000u)), 0);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), out);
#endif
#else
  for (int lane = 0; lane < width; ++lane) { to[lane] = to_half(v[lane]); }
#endif
}
//! @}
