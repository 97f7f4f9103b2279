// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors of one width for one instruction set, from compiler vectors: how they are loaded and shuffled.

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

//! @brief Makes the compiler compute `v` before it prefetches or reads anything that follows. Otherwise g++ 12 prefetches
//! all rows of a block at once, and copies rows that lie in memory to other memory. clang 14 does neither, and would be
//! slower with this.
TERSUM_SIMD void finish([[maybe_unused]] words& v)
{
#if TERSUM_SIMD_WIDTH == 16 && !defined(__clang__)
  asm volatile("" : "+v"(v) : : "memory");
#endif
}

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

//! Lanes of the two halves alternating.
template <class Vector>
TERSUM_SIMD Vector alternate_halves(Vector v)
{
  return interleave<0>(v, join_halves<1>(v, v));
}

//! The inverse: the even lanes followed by the odd ones.
template <class Vector>
TERSUM_SIMD Vector part_halves(Vector v)
{
  return join_halves<0>(even(v, v), odd(v, v));
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

//! @brief Reorders an array of vectors into one sequence, in which lane 0 of each vector comes first, then lane 1 of each.
template <int Count>
TERSUM_SIMD void zip(words (&v)[Count])
{
  TERSUM_UNROLL
  for (int stage = 1; stage < Count; stage *= 2) {
    words mixed[Count];
    TERSUM_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      mixed[2 * i]     = interleave<0>(v[i], v[i + Count / 2]);
      mixed[2 * i + 1] = interleave<1>(v[i], v[i + Count / 2]);
    }
    TERSUM_UNROLL
    for (int i = 0; i < Count; ++i) { v[i] = mixed[i]; }
  }
}

//! @brief The inverse of `zip`.
template <int Count>
TERSUM_SIMD void unzip(words (&v)[Count])
{
  TERSUM_UNROLL
  for (int stage = 1; stage < Count; stage *= 2) {
    words mixed[Count];
    TERSUM_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      mixed[i]             = even(v[2 * i], v[2 * i + 1]);
      mixed[i + Count / 2] = odd(v[2 * i], v[2 * i + 1]);
    }
    TERSUM_UNROLL
    for (int i = 0; i < Count; ++i) { v[i] = mixed[i]; }
  }
}
