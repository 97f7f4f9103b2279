// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! `zip` and `unzip` of a number of vectors that is no power of two: of codes with 3, 5, 6 or 7 bits.

//! @brief The lanes of a followed by those of b that have these numbers.
TERSUM_SIMD words permute(words a, words b, words numbers)
{
#if TERSUM_SIMD_WIDTH == 16
  return (words)_mm512_permutex2var_epi32((__m512i)a, (__m512i)numbers, (__m512i)b);
#elif TERSUM_SIMD_WIDTH == 8
  __m256i const of_a = _mm256_permutevar8x32_epi32((__m256i)a, (__m256i)numbers);
  __m256i const of_b = _mm256_permutevar8x32_epi32((__m256i)b, (__m256i)numbers);
  return (words)_mm256_blendv_ps((__m256)of_a, (__m256)of_b, (__m256)(numbers << 28));
#else
  std::uint32_t of[2 * width], number[width], found[width];
  store(of, a);
  store(of + width, b);
  store(number, numbers);
  for (int lane = 0; lane < width; ++lane) { found[lane] = of[number[lane]]; }
  return load(found);
#endif
}

//! @brief Which lanes `permute` takes of `Count` vectors, first of two, then of what it has and the next, to make one sequence of
//! them, lane 0 of each first, or, if it is not to `Join`, the vectors of such a sequence again.
template <int Count, bool Join>
struct lane_numbers {
  alignas(64) std::uint32_t of[extent(Count)][extent(Count)][width];

  constexpr lane_numbers() : of{}
  {
    for (int to = 0; to < Count; ++to) {
      for (int i = 0; i < width; ++i) {
        int const at     = Join ? to * width + i : i * Count + to;
        int const vector = Join ? at % Count : at / width;
        int const lane   = Join ? at / Count : at % width;
        for (int next = 1; next < Count; ++next) {
          bool const first = next == 1 && vector == 0;
          of[to][next][i]  = static_cast<std::uint32_t>(vector == next ? width + lane
                                                        : first        ? lane
                                                                       : i);
        }
      }
    }
  }
};

//! @brief Reorders vectors by `lane_numbers`.
template <bool Join, std::size_t Count>
TERSUM_SIMD void permute_all(words (&v)[Count])
{
  constexpr int count = static_cast<int>(Count);
  static constexpr lane_numbers<count, Join> numbers{};
  words moved[Count];
  TERSUM_UNROLL
  for (int to = 0; to < count; ++to) {
    moved[to] = v[0];
    TERSUM_UNROLL
    for (int next = 1; next < count; ++next) {
      moved[to] = permute(moved[to], v[next], load(numbers.of[to][next]));
    }
  }
  TERSUM_UNROLL
  for (int i = 0; i < count; ++i) { v[i] = moved[i]; }
}

template <std::size_t Count>
requires((Count & (Count - 1)) != 0) TERSUM_SIMD void zip(words (&v)[Count])
{
  permute_all<true>(v);
}

template <std::size_t Count>
requires((Count & (Count - 1)) != 0) TERSUM_SIMD void unzip(words (&v)[Count])
{
  permute_all<false>(v);
}
