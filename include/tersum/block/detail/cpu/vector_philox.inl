// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Random words in every lane, on top of vectors.inl.

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
template <int Rounds, std::size_t Draws>
TERSUM_SIMD void philox(philox_block const& counter, std::uint64_t key, words (&out)[Draws][4])
{
  constexpr int draws = static_cast<int>(Draws);
  using constants     = philox_constants;
  longs k0            = (longs)broadcast(static_cast<std::uint32_t>(key));
  longs k1            = (longs)broadcast(static_cast<std::uint32_t>(key >> 32));
  longs state[Draws][2][4];
  TERSUM_UNROLL
  for (int d = 0; d < draws; ++d) {
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
    for (int d = 0; d < draws; ++d) {
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
  for (int d = 0; d < draws; ++d) {
    TERSUM_UNROLL
    for (int w = 0; w < 4; ++w) { out[d][w] = merge_lower(state[d][0][w], state[d][1][w]); }
  }
}
