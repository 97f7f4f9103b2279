// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors as the values that policies compute with, of which value.hpp has the same of floats, and random words in every lane.
//!
//! A policy belongs to no instruction set, and is inlined into kernels that do. So what it calls is no function that must be inlined
//! into it. And as sets differ in how they pass vectors, these objects have a copy constructor: then they are passed in memory, until
//! compilers see through it.

template <class Vector>
struct vector_value {
  using own_words    = vector_value<words>;
  using own_integers = vector_value<integers>;
  using element      = std::remove_cvref_t<decltype(Vector{}[0])>;

  static constexpr int comparisons = width == 16 ? 3 : 15;

  Vector v;

  vector_value() = default;
  TERSUM_OPERATOR vector_value(Vector of) : v{of} {}
  TERSUM_OPERATOR vector_value(element all) : v{(Vector)broadcast(bit_cast<std::uint32_t>(all))} {}
  TERSUM_OPERATOR vector_value(vector_value const& other) : v{other.v} {}
  TERSUM_OPERATOR vector_value& operator=(vector_value const& other)
  {
    v = other.v;
    return *this;
  }

#define TERSUM_BINARY(of)                                                                          \
  TERSUM_OPERATOR friend vector_value operator of(vector_value const& a, vector_value const& b)    \
  {                                                                                                \
    return a.v of b.v;                                                                             \
  }
#define TERSUM_COMPARISON(of)                                                                      \
  TERSUM_OPERATOR friend vector_value<integers> operator of(vector_value const& a,                 \
                                                            vector_value const& b)                 \
  {                                                                                                \
    return (integers)(a.v of b.v);                                                                 \
  }
  TERSUM_BINARY(+)
  TERSUM_BINARY(-)
  TERSUM_BINARY(*)
  TERSUM_BINARY(/)
  TERSUM_BINARY(&)
  TERSUM_BINARY(|)
  TERSUM_BINARY(^)
  TERSUM_COMPARISON(<)
  TERSUM_COMPARISON(>)
  TERSUM_COMPARISON(<=)
  TERSUM_COMPARISON(>=)
  TERSUM_COMPARISON(==)
  TERSUM_COMPARISON(!=)
#undef TERSUM_BINARY
#undef TERSUM_COMPARISON
  TERSUM_OPERATOR friend vector_value operator<<(vector_value const& a, int bits)
  {
    return a.v << bits;
  }
  TERSUM_OPERATOR friend vector_value operator>>(vector_value const& a, int bits)
  {
    return a.v >> bits;
  }
  TERSUM_OPERATOR friend vector_value operator-(vector_value const& a) { return -a.v; }
  TERSUM_OPERATOR friend vector_value operator~(vector_value const& a) { return ~a.v; }

  TERSUM_OPERATOR friend vector_value<words> one_if(vector_value const& condition)
  {
    return words{} - (words)condition.v;
  }
  TERSUM_OPERATOR friend bool all(vector_value const& condition)
  {
    bool held = true;
    for (int lane = 0; lane < width; ++lane) { held = held && condition.v[lane] != 0; }
    return held;
  }
};

// In templates nvcc 13.0 does not know what is chosen from.
#define TERSUM_CHOICES(of)                                                                         \
  TERSUM_OPERATOR vector_value<of> select(vector_value<integers> const& condition,                 \
                                          vector_value<of> const& chosen,                          \
                                          vector_value<of> const& other)                           \
  {                                                                                                \
    return condition.v != integers{} ? chosen.v : other.v;                                         \
  }                                                                                                \
  TERSUM_OPERATOR vector_value<of> smaller(vector_value<of> const& a, vector_value<of> const& b)   \
  {                                                                                                \
    return smaller(a.v, b.v);                                                                      \
  }                                                                                                \
  TERSUM_OPERATOR vector_value<of> larger(vector_value<of> const& a, vector_value<of> const& b)    \
  {                                                                                                \
    return larger(a.v, b.v);                                                                       \
  }
TERSUM_CHOICES(floats)
TERSUM_CHOICES(words)
TERSUM_CHOICES(integers)
#undef TERSUM_CHOICES

TERSUM_OPERATOR vector_value<floats> smaller_size(vector_value<floats> const& a,
                                                  vector_value<floats> const& b)
{
  return smaller(a, b);
}
TERSUM_OPERATOR vector_value<floats> larger_size(vector_value<floats> const& a,
                                                 vector_value<floats> const& b)
{
  return larger(a, b);
}

TERSUM_OPERATOR vector_value<words> to_bits(vector_value<floats> const& v) { return to_bits(v.v); }
TERSUM_OPERATOR vector_value<floats> from_bits(vector_value<words> const& v)
{
  return from_bits(v.v);
}
TERSUM_OPERATOR vector_value<integers> to_integers(vector_value<words> const& v)
{
  return (integers)v.v;
}
TERSUM_OPERATOR vector_value<words> to_words(vector_value<integers> const& v) { return (words)v.v; }

TERSUM_OPERATOR vector_value<floats> fma(vector_value<floats> const& a,
                                         vector_value<floats> const& b,
                                         vector_value<floats> const& c)
{
  return fma(a.v, b.v, c.v);
}

template <int Offset>
TERSUM_OPERATOR vector_value<words> rounded_bits(vector_value<floats> const& v, float scale)
{
  return rounded_bits<Offset>(v.v, scale);
}

template <int Count>
TERSUM_OPERATOR vector_value<floats> look_up(float const* table, vector_value<words> const& number)
{
  return look_up<Count>(table, number.v);
}

TERSUM_OPERATOR vector_value<integers> truncate(vector_value<floats> const& v)
{
  return __builtin_convertvector(v.v, integers);
}

#if TERSUM_SIMD_WIDTH >= 8
//! The sums of signed bytes, from `least` to 127.
TERSUM_OPERATOR vector_value<words> add_bytes(vector_value<words> const& a,
                                              vector_value<words> const& b,
                                              vector_value<words> const& least)
{
#if TERSUM_SIMD_WIDTH == 16
  return (words)_mm512_max_epi8(_mm512_adds_epi8((__m512i)a.v, (__m512i)b.v), (__m512i)least.v);
#else
  return (words)_mm256_max_epi8(_mm256_adds_epi8((__m256i)a.v, (__m256i)b.v), (__m256i)least.v);
#endif
}
#endif

template <class Vector>
struct stored_lanes {
  typename vector_value<Vector>::element at[width];
  TERSUM_OPERATOR explicit stored_lanes(Vector v) { __builtin_memcpy(at, &v, sizeof(v)); }
};

TERSUM_OPERATOR vector_value<floats> values_of(float const (&of)[width]) { return load(of); }
TERSUM_OPERATOR vector_value<words> values_of(std::uint32_t const (&of)[width])
{
  return load_words(of);
}

// Arrays, not elements of vectors: so compilers make vectors of the loop again if the function has no branches.
template <class Function, class... Vectors>
TERSUM_OPERATOR auto by_lanes(Function const& function, vector_value<Vectors> const&... of)
{
  decltype(function(of.v[0]...)) results[width];
  [&](auto const&... from) {
    for (int lane = 0; lane < width; ++lane) { results[lane] = function(from.at[lane]...); }
  }(stored_lanes<Vectors>(of.v)...);
  return values_of(results);
}

// Random words in every lane.

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
