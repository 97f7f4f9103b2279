// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Neighbouring values between memory and the registers of one thread.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief `Size` neighbours between memory and the registers of one thread, as floats, 16 bytes at a time.
//!
//! It needs no shared memory and no barrier, and threads may call it alone. Register i holds value i. On sm_90 a float takes a quarter of
//! an instruction, a value of 16 bits one and an eighth.
//!
//! Where a thread has more than 16 bytes, an access of a warp takes half of each of 32 sectors, and the next one the other half. Memory
//! moves them once, but L1 reads and L2 writes 8 bytes for a float. Pairs of threads that shared sectors would take 1.5 instructions a
//! float more, and all threads of the warp: that is `block_values`, which chunks are better off with.
//!
//! @par Example
//! @snippet examples/kernels/cast_to_nvfp4.hpp load
//! @tparam Size  A multiple of 4; of values of 16 bits 4, which move 8 bytes at a time, or a multiple of 8.
template <int Size>
struct thread_values {
  static_assert(Size > 0 && Size % 4 == 0, "tersum: thread_values<Size> needs a multiple of 4");

  //! @param ctx   The machine.
  //! @param from  Floats, halves or bfloat16, aligned to what moves at a time.
  //! @param v     Receives `Size` values.
  template <class Context, gradient_element Element>
  TERSUM_BODY static void load(Context const& ctx, Element const* from, float* v)
  {
    if constexpr (sizeof(Element) == 4) {
      word4 const four = ctx.load(reinterpret_cast<word4 const*>(from));
      v[0]             = Context::from_bits(four.x);
      v[1]             = Context::from_bits(four.y);
      v[2]             = Context::from_bits(four.z);
      v[3]             = Context::from_bits(four.w);
    } else if constexpr (Size == 4) {
      std::uint64_t const four = ctx.load(reinterpret_cast<std::uint64_t const*>(from));
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        v[i] = Context::value(Element::from_bits(static_cast<std::uint16_t>(four >> 16 * i)));
      }
    } else {
      static_assert(Size % 8 == 0, "tersum: thread_values of 16 bits are 4 or a multiple of 8");
      word4 const four             = ctx.load(reinterpret_cast<word4 const*>(from));
      std::uint32_t const words[4] = {four.x, four.y, four.z, four.w};
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        v[2 * i] = Context::value(Element::from_bits(static_cast<std::uint16_t>(words[i])));
        v[2 * i + 1] =
          Context::value(Element::from_bits(static_cast<std::uint16_t>(words[i] >> 16)));
      }
    }
    constexpr int rest = Size - each<Element>;
    if constexpr (rest > 0) {
      thread_values<rest>::load(ctx, from + each<Element>, v + each<Element>);
    }
  }

  //! @brief Writes them, rounded to the nearest element. NaN stays NaN.
  //! @tparam Finite  Whether that is the nearest element which is finite, as for means; otherwise sums of halves may overflow.
  template <bool Finite = true, class Context, gradient_element Element>
  TERSUM_BODY static void store(Context const& ctx, float const* v, Element* to)
  {
    if constexpr (sizeof(Element) == 4) {
      ctx.store(
        reinterpret_cast<word4*>(to),
        word4{Context::bits(v[0]), Context::bits(v[1]), Context::bits(v[2]), Context::bits(v[3])});
    } else {
      auto const pair = [v](int i) {
        return Finite ? Context::template pack_finite<Element>(v[i], v[i + 1])
                      : Context::template pack<Element>(v[i], v[i + 1]);
      };
      if constexpr (Size == 4) {
        std::uint64_t const high = pair(2);
        ctx.store(reinterpret_cast<std::uint64_t*>(to), pair(0) | high << 32);
      } else {
        ctx.store(reinterpret_cast<word4*>(to), word4{pair(0), pair(2), pair(4), pair(6)});
      }
    }
    constexpr int rest = Size - each<Element>;
    if constexpr (rest > 0) {
      thread_values<rest>::template store<Finite>(ctx, v + each<Element>, to + each<Element>);
    }
  }

 private:
  //! Values that move at a time.
  template <class Element>
  static constexpr int each = sizeof(Element) == 2 && Size > 4 ? 8 : 4;
};

}  // namespace tersum::inline v0
