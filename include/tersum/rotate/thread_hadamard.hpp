// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The Hadamard transform of values that one thread has in registers: kernel body.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/rotate/detail/butterflies.hpp>

namespace tersum::inline v0 {

//! @brief The randomized Hadamard transform of 16, 32 or 64 values, all of them in the registers of one thread.
//!
//! It needs no shared memory and no barrier, and threads may call it alone. Register i holds value i before and after.
//! Nothing is scaled: values grow by the square root of Size in each direction. The lowest index bit goes first, which
//! fixes the rounding. `block_hadamard` is made of it. On sm_90 a value takes log2(Size) instructions, and one or two
//! for its sign.
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
    apply_signs<true>(ctx, number, key, v);
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
  //! @tparam ByPredicates  Fewer instructions, but more registers where much else is held.
  template <bool ByPredicates = false, class Context>
  TERSUM_BODY static void apply_signs(Context const&,
                                      std::uint64_t number,
                                      std::uint64_t key,
                                      float (&v)[detail::extent(Size)])
  {
    constexpr int words = (Size + 31) / 32;
    TERSUM_UNROLL
    for (int w = 0; w < words; ++w) {
      std::uint32_t const word = sign_bits(number * words + static_cast<unsigned>(w), key);
      TERSUM_UNROLL
      for (int i = 0; i < Size / words; ++i) {
        float& x = v[32 * w + i];
        x        = ByPredicates
                     ? detail::flip_sign(x, word, i)
                     : Context::from_bits(Context::bits(x) ^ ((word << (31 - i)) & 0x80000000u));
      }
    }
  }
};

}  // namespace tersum::inline v0
