// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors of one width for one instruction set, from compiler vectors: how they are loaded and shuffled, arithmetic that compilers
//! have no operator for, and vectors as the values that policies compute with.

// How vectors are loaded and shuffled.

inline constexpr int width = TERSUM_SIMD_WIDTH;

typedef float floats __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));
typedef std::uint32_t words __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));
typedef std::int32_t integers __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));
typedef std::uint16_t shorts __attribute__((vector_size(TERSUM_SIMD_WIDTH * 2)));

//! A vector as it lies in memory.
template <class Vector>
TERSUM_SIMD Vector load_as(void const* from)
{
  Vector v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

TERSUM_SIMD floats load(float const* from) { return load_as<floats>(from); }

TERSUM_SIMD words load(std::uint32_t const* from) { return load_as<words>(from); }

template <class Vector>
TERSUM_SIMD void store(void* to, Vector v)
{
  __builtin_memcpy(to, &v, sizeof(v));
}

TERSUM_SIMD floats from_bits(words v) { return (floats)v; }

TERSUM_SIMD words to_bits(floats v) { return (words)v; }

//! of(lane) for the numbers 0 .. width-1. Spelled out: nvcc's front end loses the expansion of a parameter pack in a builtin.
#if TERSUM_SIMD_WIDTH == 4
#define TERSUM_EACH_LANE(of) of(0), of(1), of(2), of(3)
#elif TERSUM_SIMD_WIDTH == 8
#define TERSUM_EACH_LANE(of) of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)
#else
#define TERSUM_EACH_LANE(of)                                                                       \
  of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12),    \
    of(13), of(14), of(15)
#endif
#define TERSUM_SHUFFLE(a, b, of) __builtin_shufflevector(a, b, TERSUM_EACH_LANE(of))

//! The numbers 0 .. width-1.
TERSUM_SIMD words lane_index() { return words{TERSUM_EACH_LANE(std::uint32_t)}; }

//! nvcc 13.0's front end crashes on a scalar next to a vector of signed integers; so constants come through here.
TERSUM_SIMD words broadcast(std::uint32_t value) { return value - words{}; }

TERSUM_SIMD floats broadcast(float value) { return from_bits(broadcast(float_bits(value))); }

//! @brief Makes the compiler compute `v` before it prefetches or reads anything that follows. Otherwise g++ 12 prefetches
//! all rows of a block at once, and copies rows that lie in memory to other memory. clang 14 does neither, and would be
//! slower with this; so would vectors of 8.
TERSUM_SIMD void finish([[maybe_unused]] words& v)
{
#if TERSUM_SIMD_WIDTH != 8 && defined(__x86_64__) && !defined(__clang__)
  asm volatile("" : "+v"(v) : : "memory");
#endif
}

//! @name Shuffles
//! A function of a lane says which element it gets, of a followed by b.
//! @{
template <int Distance>
constexpr int across(int lane)
{
  static_assert(Distance < width);
  return lane ^ Distance;
}
template <int First>
constexpr int every_other(int lane)
{
  return 2 * lane + First;
}
template <int High>
constexpr int alternating(int lane)
{
  return (High * width + lane) / 2 + lane % 2 * width;
}
template <int High>
constexpr int of_halves(int lane)
{
  return (High + lane / (width / 2)) * (width / 2) + lane;
}

//! Lanes whose numbers differ by Distance change places.
template <int Distance>
TERSUM_SIMD floats exchange(floats v)
{
  return TERSUM_SHUFFLE(v, v, across<Distance>);
}

//! Elements 0, 2, 4 .. of a followed by b.
template <class Vector>
TERSUM_SIMD Vector even(Vector a, Vector b)
{
  return TERSUM_SHUFFLE(a, b, every_other<0>);
}

//! Elements 1, 3, 5 .. of a followed by b.
template <class Vector>
TERSUM_SIMD auto odd(Vector a, Vector b)
{
  return TERSUM_SHUFFLE(a, b, every_other<1>);
}

//! a and b alternating: their first halves when `High` is 0, their second halves when it is 1.
template <int High, class Vector>
TERSUM_SIMD Vector interleave(Vector a, Vector b)
{
  return TERSUM_SHUFFLE(a, b, alternating<High>);
}

//! One half of a followed by the same half of b.
template <int High, class Vector>
TERSUM_SIMD Vector join_halves(Vector a, Vector b)
{
  return TERSUM_SHUFFLE(a, b, of_halves<High>);
}

#undef TERSUM_SHUFFLE
#undef TERSUM_EACH_LANE
//! @}

//! @brief Reorders an array of vectors into one sequence, in which lane 0 of each vector comes first, then lane 1 of each.
template <std::size_t Count>
TERSUM_SIMD void zip(words (&v)[Count])
{
  constexpr int count = static_cast<int>(Count);
  TERSUM_UNROLL
  for (int stage = 1; stage < count; stage *= 2) {
    words mixed[Count];
    TERSUM_UNROLL
    for (int i = 0; i < count / 2; ++i) {
      mixed[2 * i]     = interleave<0>(v[i], v[i + count / 2]);
      mixed[2 * i + 1] = interleave<1>(v[i], v[i + count / 2]);
    }
    TERSUM_UNROLL
    for (int i = 0; i < count; ++i) { v[i] = mixed[i]; }
  }
}

//! @brief The inverse of `zip`.
template <std::size_t Count>
TERSUM_SIMD void unzip(words (&v)[Count])
{
  constexpr int count = static_cast<int>(Count);
  TERSUM_UNROLL
  for (int stage = 1; stage < count; stage *= 2) {
    words mixed[Count];
    TERSUM_UNROLL
    for (int i = 0; i < count / 2; ++i) {
      mixed[i]             = even(v[2 * i], v[2 * i + 1]);
      mixed[i + count / 2] = odd(v[2 * i], v[2 * i + 1]);
    }
    TERSUM_UNROLL
    for (int i = 0; i < count; ++i) { v[i] = mixed[i]; }
  }
}

// Arithmetic that compilers have no operator for.

#if TERSUM_SIMD_WIDTH == 4 && defined(__SSE2__) && !defined(__FMA__)
#define TERSUM_FUSES_IN_DOUBLE 1
#endif

//! @brief a * b + c with one rounding.
TERSUM_SIMD floats fma(floats a, floats b, floats c)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(TERSUM_FUSES_IN_DOUBLE)
  return (floats)fuse_in_double((__m128)a, (__m128)b, (__m128)c);
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
#if defined(TERSUM_FUSES_IN_DOUBLE)
  return (floats)fuse_few_bits_in_double((__m128)a, (__m128)b, (__m128)c);
#else
  return fma(a, b, c);
#endif
}

//! @name The smaller and the larger of two
//! The second where they cannot be compared. Floats that are compared and chosen take two instructions.
//! @{
TERSUM_SIMD words smaller(words a, words b) { return a < b ? a : b; }
TERSUM_SIMD words larger(words a, words b) { return a > b ? a : b; }
TERSUM_SIMD integers smaller(integers a, integers b) { return a < b ? a : b; }
TERSUM_SIMD integers larger(integers a, integers b) { return a > b ? a : b; }
TERSUM_SIMD floats smaller(floats a, floats b)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return a < b ? a : b;
#endif
}
TERSUM_SIMD floats larger(floats a, floats b)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}
//! @}

//! @brief 1.5 2^23 + Offset + round to nearest even(v * scale), as the bits of a float: an integer in the low bits.
template <int Offset>
TERSUM_SIMD words rounded_bits(floats v, float scale)
{
#if defined(TERSUM_FUSES_IN_DOUBLE)
  return (words)round_in_double((__m128)v, scale, Offset) + 0x4b400000u;
#else
  return to_bits(fma(v, broadcast(scale), broadcast(12582912.0f + Offset)));
#endif
}
#undef TERSUM_FUSES_IN_DOUBLE

//! @name Floats of a gradient, as `vector_arrays.inl` has other elements
//! @{
TERSUM_SIMD floats load_values(float const* from) { return load(from); }

TERSUM_SIMD void store_values(float* to, floats v) { store(to, v); }

//! Means, rounded as by `finite_from_float`.
template <class Element>
TERSUM_SIMD floats within_range(floats v)
{
  floats const largest = broadcast(65504.0f);
  return std::is_same_v<Element, half> ? larger(-largest, smaller(largest, v)) : v;
}
//! @}

//! @brief A vector as the value that policies compute with: value.hpp has the same of floats.
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
  static constexpr int unplaced    = width == 16 ? 1 : width == 8 ? 7 : 3;

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

TERSUM_OPERATOR vector_value<integers> truncate(vector_value<floats> const& v)
{
  return __builtin_convertvector(v.v, integers);
}
