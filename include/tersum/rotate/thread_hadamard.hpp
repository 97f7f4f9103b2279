// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The Hadamard transform of values that one thread has in registers: kernel body.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>

namespace tersum::inline v0 {

namespace detail {

//! @brief A float with the other sign if bit i of `signs` is set. It is written as a condition: nvcc moves a byte of a word
//! to predicates in one instruction, where a shift takes one for each bit.
[[nodiscard]] TERSUM_INLINE constexpr float flip_sign(float value,
                                                      std::uint32_t signs,
                                                      int i) noexcept
{
  return (signs & (1u << i)) != 0 ? -value : value;
}

//! @brief Whether one instruction adds two floats, as from sm_100 on.
template <class Context>
concept adds_two = Context::adds_two;

//! @brief Butterflies over the bits First .. Last-1 of the index of an array, ascending.
//!
//! Where one instruction adds two floats these are neighbours, i and i + 1, in every level but the first, which makes both
//! results of one butterfly: it takes two values from anywhere and leaves them side by side.
template <int First, int Last, class Context, std::size_t Size>
TERSUM_BODY void register_butterflies(Context const&, float (&v)[Size])
{
  TERSUM_UNROLL
  for (int level = First; level < Last; ++level) {
    TERSUM_UNROLL
    for (int i = 0; i < static_cast<int>(Size); ++i) {
      int const j = i | 1 << level;
      if (i == j) { continue; }
      if constexpr (adds_two<Context>) {
        if (level == 0) {
          Context::butterfly(v[i], v[j]);
        } else if (i % 2 == 0) {
          Context::two_butterflies(v[i], v[i + 1], v[j], v[j + 1]);
        }
      } else {
        float const a = v[i];
        float const b = v[j];
        v[i]          = Context::add(a, b);
        v[j]          = Context::subtract(a, b);
      }
    }
  }
}

}  // namespace detail

//! @brief The randomized Hadamard transform of 16, 32 or 64 values, all of them in the registers of one thread.
//!
//! It needs no shared memory and no barrier, and threads may call it alone. Register i holds value i before and after. Nothing
//! is scaled: values grow by the square root of Size in each direction. The lowest index bit goes first, which fixes the
//! rounding. `block_hadamard` is made of it. On sm_90 a value takes log2(Size) instructions, and two for its sign.
//!
//! @par Example
//! @snippet examples/kernels/cast_to_nvfp4.hpp rotate
//! @tparam Size  Values of a thread, 16, 32 or 64.
template <int Size>
struct thread_hadamard {
  static_assert(Size == 16 || Size == 32 || Size == 64,
                "tersum: thread_hadamard<Size> needs a Size of 16, 32 or 64");

  //! @brief Flips random signs, then transforms.
  //! @param number  That of these values among all that are rotated so: it picks the signs.
  //! @param key     `sign_key(step, seed)`.
  template <block_context Context>
  TERSUM_BODY static void forward(Context const& ctx,
                                  std::uint64_t number,
                                  std::uint64_t key,
                                  float (&v)[detail::extent(Size)])
  {
    apply_signs<~0u>(ctx, number, key, v);
    transform(ctx, v);
  }

  //! @brief Transforms, then flips the signs that `forward` flipped. Both after each other multiply by Size.
  template <block_context Context>
  TERSUM_BODY static void backward(Context const& ctx,
                                   std::uint64_t number,
                                   std::uint64_t key,
                                   float (&v)[detail::extent(Size)])
  {
    transform(ctx, v);
    apply_signs(ctx, number, key, v);
  }

  //! The transform without signs, which is its own inverse but for a factor of Size.
  template <class Context>
  TERSUM_BODY static void transform(Context const& ctx, float (&v)[detail::extent(Size)])
  {
    detail::register_butterflies<0, detail::log2_exact(Size)>(ctx, v);
  }

  //! @brief Flips the sign of value i where bit i % 32 of word i / 32 of `sign_bits` is set.
  //! @tparam ByPredicates  Bits of the values whose signs predicates flip: fewer instructions, but more registers where much else is
  //!                       held.
  //! @param flips          Whether any is set.
  template <std::uint32_t ByPredicates = 0, class Context>
  TERSUM_BODY static void apply_signs(Context const&,
                                      std::uint64_t number,
                                      std::uint64_t key,
                                      float (&v)[detail::extent(Size)],
                                      bool flips = true)
  {
    constexpr int words = (Size + 31) / 32;
    TERSUM_UNROLL
    for (int w = 0; w < words; ++w) {
      std::uint32_t const bits = sign_bits(number * words + static_cast<unsigned>(w), key);
      std::uint32_t const word = flips ? bits : 0u;
      TERSUM_UNROLL
      for (int i = 0; i < Size / words; ++i) {
        float& x = v[32 * w + i];
        x        = (ByPredicates >> i & 1u) != 0
                     ? detail::flip_sign(x, word, i)
                     : Context::from_bits(Context::bits(x) ^ ((word << (31 - i)) & 0x80000000u));
      }
    }
  }
};

}  // namespace tersum::inline v0
