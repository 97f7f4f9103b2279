// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient elements to vectors of floats and back.

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

//! Makes every NaN the one that `to_float` makes of a half.
TERSUM_SIMD floats quiet(floats v)
{
  words const size = to_bits(v) & 0x7fffffffu;
  return from_bits(size > 0x7f800000u ? broadcast(0x7fffffffu) : to_bits(v));
}

//! Loads values without that: for sums, whose NaNs `store_values` makes the same.
template <class Element>
TERSUM_SIMD floats load_any_nan(Element const* from)
{
  return load_values(from);
}

TERSUM_SIMD floats load_any_nan(half const* from)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_maskz_cvtph_ps(0xffff,
                                       _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from)));
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
#else
  typedef std::uint16_t shorts __attribute__((vector_size(TERSUM_SIMD_WIDTH * 2)));
  shorts v;
  __builtin_memcpy(&v, from, sizeof(v));
  words const value     = __builtin_convertvector(v, words);
  integers const size   = (integers)(value & 0x7fffu);
  words const bits      = (words)size << 13;
  words const normal    = bits + (size < 0x7c00 ? broadcast(0x38000000u) : broadcast(0x70000000u));
  words const subnormal = to_bits(from_bits(bits + 0x38800000u) - broadcast(0x1p-14f));
  return from_bits((size < 0x0400 ? subnormal : normal) | (value & 0x8000u) << 16);
#endif
}

TERSUM_SIMD floats load_values(half const* from) { return quiet(load_any_nan(from)); }

TERSUM_SIMD void store_values(float* to, floats v) { store(to, v); }

//! Rounds to bfloat16s, in the upper halves of the words. The lower halves are undefined.
TERSUM_SIMD words to_bfloat16s(floats v)
{
  words const bits = to_bits(v);
  return (bits & 0x7fffffffu) > 0x7f800000u ? broadcast(0x7fff0000u)
                                            : bits + 0x7fffu + ((bits >> 16) & 1u);
}

TERSUM_SIMD void store_values(bfloat16* to, floats v)
{
  typedef std::uint16_t shorts __attribute__((vector_size(TERSUM_SIMD_WIDTH * 2)));
  shorts const out = __builtin_convertvector(to_bfloat16s(v) >> 16, shorts);
  __builtin_memcpy(to, &out, sizeof(out));
}

TERSUM_SIMD void store_values(half* to, floats v)
{
#if TERSUM_SIMD_WIDTH == 16
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(0xffff, (__m512)quiet(v), 0));
#elif TERSUM_SIMD_WIDTH == 8
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph((__m256)quiet(v), 0));
#else
  typedef std::uint16_t shorts __attribute__((vector_size(TERSUM_SIMD_WIDTH * 2)));
  words const bits      = to_bits(v);
  integers const size   = (integers)(bits & 0x7fffffffu);
  words const sign      = (bits >> 16) & 0x8000u;
  words const subnormal = to_bits(from_bits((words)size) + broadcast(0.5f)) - 0x3f000000u;
  words const normal    = ((words)size - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  words const finite    = size < 0x38800000 ? subnormal : normal;
  words const number    = (size < 0x477ff000 ? finite : broadcast(0x7c00u)) | sign;
  shorts const out =
    __builtin_convertvector(size > 0x7f800000 ? broadcast(0x7fffu) : number, shorts);
  __builtin_memcpy(to, &out, sizeof(out));
#endif
}

//! Stores means, rounded as by `finite_from_float`.
template <class Element>
TERSUM_SIMD floats within_range(floats v)
{
  if constexpr (std::is_same_v<Element, half>) {
    floats const largest = broadcast(65504.0f);
    v                    = v > largest ? largest : v;
    v                    = v < -largest ? -largest : v;
  }
  return v;
}
//! @}
