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

//! NaNs as `to_float` makes them of a half.
TERSUM_SIMD floats quiet(floats v)
{
  words const size = to_bits(v) & 0x7fffffffu;
  return from_bits(size > 0x7f800000u ? broadcast(0x7fffffffu) : to_bits(v));
}

//! Without that: for sums, which `store_values` makes a half of.
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
  floats v;
  for (int lane = 0; lane < width; ++lane) { v[lane] = to_float(from[lane]); }
  return v;
#endif
}

TERSUM_SIMD floats load_values(half const* from) { return quiet(load_any_nan(from)); }

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
#if TERSUM_SIMD_WIDTH == 16
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(0xffff, (__m512)quiet(v), 0));
#elif TERSUM_SIMD_WIDTH == 8
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph((__m256)quiet(v), 0));
#else
  for (int lane = 0; lane < width; ++lane) { to[lane] = to_half(v[lane]); }
#endif
}

//! A mean, as `finite_from_float` makes elements of it.
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
