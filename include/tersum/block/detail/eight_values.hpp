// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Eight values of a thread between memory and registers, and values within what sums of ranks can hold: kernel body parts.

#pragma once

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

//! @brief Where a thread's eight of `Count` neighbouring coordinates are, if Count / 8 threads share them. Where `Element` is a
//! float, it has four in either half, so that sixteen bytes of every thread fill whole sectors of memory; eight neighbours of
//! 16 bits do so as they are.
template <class Element, int Count>
struct thread_eight {
  static constexpr int apart =
    sizeof(Element) == 4 ? Count / 2 : 4;  //!< From the first four to the others.

  [[nodiscard]] TERSUM_INLINE static constexpr int first(int thread) noexcept
  {
    return thread * (sizeof(Element) == 4 ? 4 : 8);
  }
};

//! @brief Whether the address is aligned as `load_fours` and `store_fours` of so many `Apart` want it.
template <int Apart, class Element>
[[nodiscard]] TERSUM_BODY bool moves_at_once(Element const* p)
{
  return reinterpret_cast<std::uintptr_t>(p) % (Apart == 4 ? 16 : 4 * sizeof(Element)) == 0;
}

//! @brief The same of two addresses.
template <int Apart, class First, class Second>
[[nodiscard]] TERSUM_BODY bool move_at_once(First const* p, Second const* q)
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

//! @brief A thread's eight of `Count` coordinates that Count / 8 threads share, for work that does not ask which ones a thread has:
//! those of `thread_eight` where all arrays can be moved so; otherwise one of each eighth, so that an access of the threads moves
//! neighbours and fills sectors.
template <class Element, int Count>
struct eight_of {
  static constexpr int apart   = thread_eight<Element, Count>::apart;
  static constexpr int threads = Count / 8;

  bool at_once;  //!< Whether all coordinates exist, and all arrays are aligned.
  int first;     //!< The thread's first coordinate.
  int left;  //!< Coordinates from its place among the threads on: those that exist, if not all do.

  TERSUM_INLINE eight_of(int thread, int length, bool aligned)
    : at_once{static_cast<bool>((length == Count) & aligned)},
      first{at_once ? thread_eight<Element, Count>::first(thread) : thread}, left{length - thread}
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
