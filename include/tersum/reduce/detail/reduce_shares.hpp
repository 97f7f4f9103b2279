// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction on the CPU, of the share of an array that a thread has.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The width of the lanes that an operation adds, if their sum is in this file; otherwise 0.
template <class Op>
inline constexpr int vector_lanes = 0;
template <int Bits>
requires(Bits <= 8) inline constexpr int vector_lanes<saturating_add<Bits>> = Bits;

#if defined(__x86_64__)
// The processor adds lanes of 8 bits with saturation. Lanes of 4 bits are added in the upper halves of bytes. The sum of
// two lanes of 2 bits is -1, 0 or 1, and is found bit by bit. It is negative if both lanes are, and if one is, unless
// they are -1 and 1. It is not zero if it is negative, or if no lane is negative and one of them is 1.

#define TERSUM_LANES_TARGET __attribute__((target("avx512f,avx512bw")))

//! @brief 64 bytes of saturating_add<Bits>.
template <int Bits>
TERSUM_LANES_TARGET inline __m512i add_lanes(__m512i a, __m512i b) noexcept
{
  constexpr int select = 0xca;  // of the first operand's bits
  if constexpr (Bits == 8) {
    return _mm512_max_epi8(_mm512_adds_epi8(a, b), _mm512_set1_epi8(-127));
  } else if constexpr (Bits == 4) {
    __m512i const upper = _mm512_set1_epi8(-16), least = _mm512_set1_epi8(-7 * 16);
    __m512i const odd   = _mm512_adds_epi8(_mm512_and_si512(a, upper), _mm512_and_si512(b, upper));
    __m512i const even  = _mm512_adds_epi8(_mm512_and_si512(_mm512_slli_epi16(a, 4), upper),
                                          _mm512_and_si512(_mm512_slli_epi16(b, 4), upper));
    __m512i const moved = _mm512_srli_epi16(_mm512_max_epi8(even, least), 4);
    return _mm512_ternarylogic_epi32(upper, _mm512_max_epi8(odd, least), moved, select);
  } else {
    constexpr int any_but_opposite = 0xd4, or_and_not = 0xf4;
    __m512i const signs_a = _mm512_srli_epi16(a, 1), signs_b = _mm512_srli_epi16(b, 1);
    __m512i const negative =
      _mm512_ternarylogic_epi32(signs_a, signs_b, _mm512_and_si512(a, b), any_but_opposite);
    __m512i const not_zero = _mm512_ternarylogic_epi32(
      negative, _mm512_or_si512(a, b), _mm512_or_si512(signs_a, signs_b), or_and_not);
    return _mm512_ternarylogic_epi32(
      _mm512_set1_epi8(0x55), not_zero, _mm512_slli_epi16(negative, 1), select);
  }
}

//! @brief to[i] = saturating_add<Bits>(a[i], b[i]); `to` may be `a` or `b`.
template <int Bits>
TERSUM_LANES_TARGET __attribute__((aligned(64))) void add_lanes_avx512(std::uint32_t* to,
                                                                       std::uint32_t const* a,
                                                                       std::uint32_t const* b,
                                                                       std::size_t count) noexcept
{
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    fetch_beyond<false, 4096>(a + i);
    fetch_beyond<false, 4096>(b + i);
    __m512i left = _mm512_loadu_si512(a + i), right = _mm512_loadu_si512(b + i);
    asm("" : "+v"(left), "+v"(right));  // g++ would read both from memory at each use
    _mm512_storeu_si512(to + i, add_lanes<Bits>(left, right));
  }
  for (; i < count; ++i) { to[i] = saturating_add<Bits>{}(a[i], b[i]); }
}

#undef TERSUM_LANES_TARGET
#define TERSUM_LANES_TARGET __attribute__((target("avx2")))

//! @brief 32 bytes of saturating_add<Bits>.
template <int Bits>
TERSUM_LANES_TARGET inline __m256i add_lanes(__m256i a, __m256i b) noexcept
{
  if constexpr (Bits == 8) {
    return _mm256_max_epi8(_mm256_adds_epi8(a, b), _mm256_set1_epi8(-127));
  } else if constexpr (Bits == 4) {
    __m256i const upper = _mm256_set1_epi8(-16), least = _mm256_set1_epi8(-7 * 16);
    __m256i const odd   = _mm256_adds_epi8(_mm256_and_si256(a, upper), _mm256_and_si256(b, upper));
    __m256i const even  = _mm256_adds_epi8(_mm256_and_si256(_mm256_slli_epi16(a, 4), upper),
                                          _mm256_and_si256(_mm256_slli_epi16(b, 4), upper));
    __m256i const moved = _mm256_srli_epi16(_mm256_max_epi8(even, least), 4);
    return _mm256_or_si256(_mm256_and_si256(_mm256_max_epi8(odd, least), upper),
                           _mm256_andnot_si256(upper, moved));
  } else {
    __m256i const low     = _mm256_set1_epi8(0x55);
    __m256i const signs_a = _mm256_srli_epi16(a, 1), signs_b = _mm256_srli_epi16(b, 1);
    __m256i const any      = _mm256_or_si256(signs_a, signs_b);
    __m256i const negative = _mm256_or_si256(_mm256_and_si256(signs_a, signs_b),
                                             _mm256_andnot_si256(_mm256_and_si256(a, b), any));
    __m256i const not_zero =
      _mm256_or_si256(negative, _mm256_andnot_si256(any, _mm256_or_si256(a, b)));
    __m256i const signs = _mm256_slli_epi16(_mm256_and_si256(negative, low), 1);
    return _mm256_or_si256(_mm256_and_si256(not_zero, low), signs);
  }
}

//! @brief The same as add_lanes_avx512.
template <int Bits>
TERSUM_LANES_TARGET __attribute__((aligned(64))) void add_lanes_avx2(std::uint32_t* to,
                                                                     std::uint32_t const* a,
                                                                     std::uint32_t const* b,
                                                                     std::size_t count) noexcept
{
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    fetch_beyond<false, 4096>(a + i);
    fetch_beyond<false, 4096>(b + i);
    __m256i left  = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(a + i));
    __m256i right = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(b + i));
    asm("" : "+x"(left), "+x"(right));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), add_lanes<Bits>(left, right));
  }
  for (; i < count; ++i) { to[i] = saturating_add<Bits>{}(a[i], b[i]); }
}

#undef TERSUM_LANES_TARGET
#endif

//! @brief to[i] = op(a[i], b[i]); `to` may be `a` or `b`.
template <class Op>
void reduce_range(instruction_set set,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  std::size_t count)
{
  if constexpr (std::is_same_v<Op, native_sum<half>> || std::is_same_v<Op, native_sum<bfloat16>>) {
    return add_values(set, a, b, to, count);
  }
#if defined(__x86_64__)
  if constexpr (vector_lanes<Op> != 0) {
    if (set == instruction_set::avx512) {
      return add_lanes_avx512<vector_lanes<Op>>(to, a, b, count);
    }
    if (set == instruction_set::avx2) { return add_lanes_avx2<vector_lanes<Op>>(to, a, b, count); }
  }
#endif
  reduce_stretch<Op>(set, to, a, b, count);
}

//! @brief to[i] = op(a[i], b[i]) for first <= i < last of arrays of `count` elements; `to` may be `a` or `b`.
template <class Op>
void reduce_share(instruction_set set,
                  Op const& op,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  [[maybe_unused]] std::size_t count,
                  std::size_t first,
                  std::size_t last)
{
  auto const reduce_part = [&]<class Part>(Part, std::size_t begin, std::size_t end) {
    begin = std::max(begin, first);
    end   = std::min(end, last);
    if (begin < end) { reduce_range<Part>(set, to + begin, a + begin, b + begin, end - begin); }
  };
  if constexpr (has_combine_at<Op>) {
    op.for_each_part(count, reduce_part);
  } else {
    reduce_part(op, 0, count);
  }
}

//! @brief body(first, last) for shares of an array, one on each thread, of whole lines of the cache and at least
//! `least_bytes`.
template <class Element, class Body>
void each_share_of_array(int threads, std::size_t count, std::size_t least_bytes, Body const& body)
{
  std::size_t const least = maximum<std::size_t>(least_bytes / sizeof(Element), 1);
  each_share(threads, count, least, 64 / sizeof(Element), body);
}

//! @brief to[i] = op(.. op(op(from[0][i], from[1][i]), from[2][i]) ..) of `arrays` arrays, at least two. A share goes through
//! all of them a stretch at a time, which the cache holds in between. `to` may be from[0].
template <class Op>
void reduce_arrays(int threads,
                   instruction_set set,
                   Op const& op,
                   typename Op::element* to,
                   typename Op::element const* const* from,
                   std::size_t arrays,
                   std::size_t count)
{
  using element                 = typename Op::element;
  constexpr std::size_t stretch = 16384 / sizeof(element);
  each_share_of_array<element>(
    threads, count, tuning{}.cpu.least_reduced, [&](std::size_t first, std::size_t last) {
      for (std::size_t begin = first; begin < last; begin += stretch) {
        std::size_t const end = std::min(begin + stretch, last);
        for (std::size_t i = 1; i < arrays; ++i) {
          reduce_share(set, op, to, i == 1 ? from[0] : to, from[i], count, begin, end);
        }
      }
    });
}

}  // namespace tersum::inline v0::detail
