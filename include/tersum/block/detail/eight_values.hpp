// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Eight values of a thread between memory and registers, and values within what sums of ranks can hold: kernel body parts.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/thread_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::detail {

//! @brief The value, or what is nearest to it of -bound and bound. NaN stays NaN.
[[nodiscard]] TERSUM_INLINE float bounded(float value, float bound)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860
  float result;
  asm("min.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(result) : "f"(value), "f"(bound));
  return result;
#else
  float const below = value > bound ? bound : value;
  return below < -bound ? -bound : below;
#endif
}

//! @brief The same of two elements of 16 bits in a word; `bounds` is the bound twice.
template <gradient_element Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t bounded_pair(std::uint32_t word, std::uint32_t bounds)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860
  std::uint32_t result;
  if constexpr (std::is_same_v<Element, half>) {
    asm("min.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(result) : "r"(word), "r"(bounds));
  } else {
    asm("min.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(word), "r"(bounds));
  }
  return result;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint32_t result;
  if constexpr (std::is_same_v<Element, half>) {
    asm("{ .reg .b32 t; min.NaN.f16x2 t, %1, %2; max.NaN.f16x2 %0, t, %3; }"
        : "=r"(result)
        : "r"(word), "r"(bounds), "r"(bounds | 0x80008000u));
  } else {
    asm("{ .reg .b32 t; min.NaN.bf16x2 t, %1, %2; max.NaN.bf16x2 %0, t, %3; }"
        : "=r"(result)
        : "r"(word), "r"(bounds), "r"(bounds | 0x80008000u));
  }
  return result;
#else
  // Magnitudes of elements are ordered as their bits; those above infinity are NaN.
  constexpr std::uint32_t infinity = std::is_same_v<Element, half> ? 0x7c00u : 0x7f80u;
  auto const within                = [bound = bounds & 0xffffu](std::uint32_t bits) {
    std::uint32_t const size = bits & 0x7fffu;
    return size > bound && size <= infinity ? (bits & 0x8000u) | bound : bits;
  };
  return within(word & 0xffffu) | within(word >> 16) << 16;
#endif
}

//! @brief Whether an address, or two, are aligned as `load_fours` and `store_fours` of so many `Apart` want it.
template <int Apart, class First, class Second = First>
[[nodiscard]] TERSUM_BODY bool moves_at_once(First const* p, Second const* q = nullptr)
{
  constexpr std::size_t wants = Apart == 4 ? 16 : 4 * maximum(sizeof(First), sizeof(Second));
  return (reinterpret_cast<std::uintptr_t>(p) | reinterpret_cast<std::uintptr_t>(q)) % wants == 0;
}

//! @brief Loads eight values, of which the others are `Apart` behind the first four.
template <int Apart, class Context, class Element>
TERSUM_BODY void load_fours(Context const& ctx, Element const* from, float* v)
{
  if constexpr (Apart == 4) {
    thread_values<8>::load(ctx, from, v);
  } else {
    thread_values<4>::load(ctx, from, v);
    thread_values<4>::load(ctx, from + Apart, v + 4);
  }
}

//! @brief Stores eight values as `load_fours` loads them.
template <int Apart, class Context, class Element>
TERSUM_BODY void store_fours(Context const& ctx, Element* to, float const* v)
{
  if constexpr (Apart == 4) {
    thread_values<8>::store<false>(ctx, v, to);
  } else {
    thread_values<4>::store<false>(ctx, v, to);
    thread_values<4>::store<false>(ctx, v + 4, to + Apart);
  }
}

//! @brief Rounds two values to the nearest elements within a bound at either sign, as `bounded_from_float` does.
//! @tparam Bounds  Has the bound as `largest` and, for elements of 16 bits, twice as a `pair`.
template <class Element, class Context, class Bounds>
TERSUM_BODY void round_bounded(Context const&, Bounds const& bounds, float* v, Element* rounded)
{
  if constexpr (sizeof(Element) == 2) {
    std::uint32_t const word =
      bounded_pair<Element>(Context::template pack<Element>(v[0], v[1]), bounds.pair);
    rounded[0] = Element::from_bits(static_cast<std::uint16_t>(word));
    rounded[1] = Element::from_bits(static_cast<std::uint16_t>(word >> 16));
    v[0]       = Context::value(rounded[0]);
    v[1]       = Context::value(rounded[1]);
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 2; ++i) { v[i] = rounded[i] = bounded(v[i], bounds.largest); }
  }
}

//! @brief Stores eight elements of 16 bits as `store_fours` stores values.
template <int Apart, class Element, class Context>
TERSUM_BODY void store_fours_of_elements(Context const& ctx, Element* to, Element const (&v)[8])
{
  std::uint32_t words[4];
  TERSUM_UNROLL
  for (int i = 0; i < 4; ++i) {
    words[i] = v[2 * i].bits | static_cast<std::uint32_t>(v[2 * i + 1].bits) << 16;
  }
  if constexpr (Apart == 4) {
    ctx.store(reinterpret_cast<word4*>(to), word4{words[0], words[1], words[2], words[3]});
  } else {
    TERSUM_UNROLL
    for (int k = 0; k < 2; ++k) {
      ctx.store(reinterpret_cast<std::uint64_t*>(to + k * Apart),
                words[2 * k] | static_cast<std::uint64_t>(words[2 * k + 1]) << 32);
    }
  }
}

//! @brief A thread's eight of `Count` coordinates that Count / 8 threads share, for work that does not ask which ones a thread has. Where
//! all arrays can be moved so they are neighbours or, if `Element` is a float, four in either half, so that sixteen bytes of every thread
//! fill whole sectors of memory; otherwise one of each eighth, so that an access of the threads moves neighbours and fills sectors.
template <class Element, int Count>
struct eight_of {
  static constexpr int apart =
    sizeof(Element) == 4 ? Count / 2 : 4;  //!< From the first four to the others.
  static constexpr int threads = Count / 8;

  //! The first of a thread's where arrays can be moved so.
  [[nodiscard]] TERSUM_INLINE static constexpr int first_of(int thread) noexcept
  {
    return thread * (sizeof(Element) == 4 ? 4 : 8);
  }

  bool at_once;  //!< Whether all coordinates exist, and all arrays are aligned.
  int first;     //!< The thread's first coordinate.
  int left;  //!< Coordinates from its place among the threads on: those that exist, if not all do.

  TERSUM_INLINE eight_of(int thread, int length, bool aligned)
    : at_once{static_cast<bool>((length == Count) & aligned)},
      first{at_once ? first_of(thread) : thread}, left{length - thread}
  {
  }

  //! Whether the thread's coordinate j exists.
  [[nodiscard]] TERSUM_INLINE bool exists(int j) const noexcept { return j * threads < left; }

  //! Coordinate j.
  [[nodiscard]] TERSUM_INLINE int operator[](int j) const noexcept
  {
    return first + (at_once ? j / 4 * apart + j % 4 : j * threads);
  }

  //! Calls work.operator()<at_once>().
  template <class Work>
  TERSUM_BODY void either_way(Work const& work) const
  {
    if (at_once) {
      work.template operator()<true>();
    } else {
      work.template operator()<false>();
    }
  }

  //! @brief Loads the eight; zeros where there are none.
  //! @param from    The first one of all.
  //! @tparam AtOnce  As `at_once` says.
  template <bool AtOnce, class Context, class From>
  TERSUM_BODY void load(Context const& ctx, From const* from, float* v) const
  {
    from += first;
    if constexpr (AtOnce) {
      load_fours<apart>(ctx, from, v);
    } else {
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        v[j] = exists(j) ? Context::value(ctx.load(from + j * threads)) : 0.0f;
      }
    }
  }

  //! @brief Stores those that exist, or with `All` all eight.
  //! @param v  Values, or elements.
  template <bool AtOnce, bool All = false, class Context, class To, class Value>
  TERSUM_BODY void store(Context const& ctx, To* to, Value const (&v)[8]) const
  {
    to += first;
    if constexpr (!AtOnce) {
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        if (!All && !exists(j)) { continue; }
        if constexpr (std::is_same_v<Value, float>) {
          ctx.store(to + j * threads, Context::template element<To>(v[j]));
        } else {
          ctx.store(to + j * threads, v[j]);
        }
      }
    } else if constexpr (std::is_same_v<Value, float>) {
      store_fours<apart>(ctx, to, v);
    } else {
      store_fours_of_elements<apart>(ctx, to, v);
    }
  }
};

//! Whether a chunk is whole and can be moved sixteen bytes at a time. All of its threads get the same answer.
template <int Size, class Element>
[[nodiscard]] TERSUM_BODY bool moves_in_eights(Element const* first, int length)
{
  return length == Size && reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
}

//! Where an array goes on, if there is one.
template <class Element>
[[nodiscard]] TERSUM_BODY Element const* behind(Element const* array, unsigned begin)
{
  return array + begin;
}
[[nodiscard]] TERSUM_BODY std::nullptr_t behind(std::nullptr_t, unsigned) { return nullptr; }

//! @brief A value of an array; where another one is given join(value, other) with its value at the same place.
template <class Context, class Element, class At, class Second, class Join>
[[nodiscard]] TERSUM_BODY float load_joined(Context const& ctx,
                                            Element const* first,
                                            At at,
                                            [[maybe_unused]] Second second,
                                            [[maybe_unused]] Join const& join)
{
  float const value = Context::value(ctx.load(first + at));
  if constexpr (std::is_null_pointer_v<Second>) {
    return value;
  } else {
    return join(value, Context::value(ctx.load(second + at)));
  }
}

//! @brief The same of eight neighbours, which lie at multiples of 16 bytes.
template <class Context, class Element, class Second, class Join>
TERSUM_BODY void load_eight_joined(Context const& ctx,
                                   Element const* first,
                                   float* v,
                                   [[maybe_unused]] Second second,
                                   [[maybe_unused]] Join const& join)
{
  thread_values<8>::load(ctx, first, v);
  if constexpr (!std::is_null_pointer_v<Second>) {
    float others[8];
    thread_values<8>::load(ctx, second, others);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = join(v[j], others[j]); }
  }
}

//! @brief Eight neighbours of a thread's coordinates, those of quarter r, to v[0..7]; zeros where there are none.
//! @tparam Edge   Whether coordinates may be missing, or the chunk not aligned to 16 bytes.
//! @param exists  Whether the chunk has any.
//! @param chunk   Its first coordinate.
//! @param second  That of another array of floats, or nullptr: join(value, other) takes the place of each value.
template <bool Edge,
          class Context,
          int Size,
          class Element,
          class Second = std::nullptr_t,
          class Join   = std::nullptr_t>
TERSUM_BODY void load_quarter(Context const& ctx,
                              block_chunk<Size> const& mine,
                              bool exists,
                              Element const* chunk,
                              int r,
                              float* v,
                              [[maybe_unused]] Second second    = nullptr,
                              [[maybe_unused]] Join const& join = nullptr)
{
  unsigned const begin = mine.thread * 8 + static_cast<unsigned>(r * (Size / 4));
  if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      v[j] = 0.0f;
      if (exists && mine.coordinate(8 * r + j) < mine.length) {
        v[j] = load_joined(ctx, chunk + begin, j, behind(second, begin), join);
      }
    }
  } else if (exists) {
    load_eight_joined(ctx, chunk + begin, v, behind(second, begin), join);
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = 0.0f; }
  }
}

//! @brief Writes eight neighbours, those that exist, rounded to the nearest element that is finite.
template <bool Edge, class Context, int Size, class Element>
TERSUM_BODY void store_quarter(Context const& ctx,
                               block_chunk<Size> const& mine,
                               bool exists,
                               float const* v,
                               Element* chunk,
                               int r)
{
  Element* const first = chunk + mine.thread * 8 + r * (Size / 4);
  if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      int const at = mine.coordinate(8 * r + j);
      if (exists && at < mine.length) {
        ctx.store(first + j, Context::template finite_element<Element>(v[j]));
      }
    }
  } else if (exists) {
    thread_values<8>::store(ctx, v, first);
  }
}

//! @brief Whether there are eight coordinates. Without a function of its own nvcc makes more instructions of kernels of low rank.
[[nodiscard]] TERSUM_INLINE constexpr bool has_eight(int left) noexcept { return left == 8; }

//! @brief Up to eight neighbours, at once where they can be. `left` is how many there are from the first one on; zeros beyond.
template <class Element, class Context>
TERSUM_BODY void load_some(Context const& ctx, Element const* from, int left, float (&v)[8])
{
  if (has_eight(left) && moves_at_once<4>(from)) {
    thread_values<8>::load(ctx, from, v);
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = j < left ? Context::value(ctx.load(from + j)) : 0.0f; }
  }
}

}  // namespace tersum::inline v0::detail
