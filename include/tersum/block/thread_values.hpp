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
//! It needs no shared memory and no barrier, and threads may call it alone. Register i holds value i. A warp reads or writes all
//! bytes of its sectors, but not in one access, so that they must stay in the cache between two; chunks of a warp are better off with
//! `block_values`. On sm_90 a float takes a quarter of an instruction, a value of 16 bits one and an eighth.
//!
//! @par Example
//! @snippet examples/kernels/cast_to_nvfp4.hpp load
//! @tparam Size  A multiple of 4. Values of 16 bits move 8 bytes at a time where it is no multiple of 8.
template <int Size>
struct thread_values {
  static_assert(Size > 0 && Size % 4 == 0, "tersum: thread_values<Size> needs a multiple of 4");

  //! @param ctx   The machine.
  //! @param from  Floats, halves or bfloat16, aligned to what moves at a time.
  //! @param v     Receives `Size` values.
  template <class Context, gradient_element Element>
  TERSUM_BODY static void load(Context const& ctx, Element const* from, float* v)
  {
    TERSUM_UNROLL
    for (int i = 0; i < Size; i += each<Element>) {
      if constexpr (sizeof(Element) == 4) {
        word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + i));
        v[i]             = Context::from_bits(four.x);
        v[i + 1]         = Context::from_bits(four.y);
        v[i + 2]         = Context::from_bits(four.z);
        v[i + 3]         = Context::from_bits(four.w);
      } else if constexpr (each<Element> == 4) {
        std::uint64_t const four = ctx.load(reinterpret_cast<std::uint64_t const*>(from + i));
        TERSUM_UNROLL
        for (int j = 0; j < 4; ++j) {
          v[i + j] = Context::value(Element::from_bits(static_cast<std::uint16_t>(four >> 16 * j)));
        }
      } else {
        word4 const four             = ctx.load(reinterpret_cast<word4 const*>(from + i));
        std::uint32_t const words[4] = {four.x, four.y, four.z, four.w};
        TERSUM_UNROLL
        for (int j = 0; j < 8; ++j) {
          auto const bits = static_cast<std::uint16_t>(words[j / 2] >> 16 * (j % 2));
          v[i + j]        = Context::value(Element::from_bits(bits));
        }
      }
    }
  }

  //! @brief Writes them, rounded to the nearest element. NaN stays NaN.
  //! @tparam Finite  Whether that is the nearest element which is finite, as for means; otherwise sums of halves may overflow.
  template <bool Finite = true, class Context, gradient_element Element>
  TERSUM_BODY static void store(Context const& ctx, float const* v, Element* to)
  {
    TERSUM_UNROLL
    for (int i = 0; i < Size; i += each<Element>) {
      if constexpr (sizeof(Element) == 4) {
        float const* const w = v + i;
        ctx.store(
          reinterpret_cast<word4*>(to + i),
          word4{
            Context::bits(w[0]), Context::bits(w[1]), Context::bits(w[2]), Context::bits(w[3])});
      } else {
        std::uint32_t words[each<Element> / 2];
        TERSUM_UNROLL
        for (int j = 0; j < each<Element> / 2; ++j) {
          float const low = v[i + 2 * j], high = v[i + 2 * j + 1];
          words[j] = Finite ? Context::template pack_finite<Element>(low, high)
                            : Context::template pack<Element>(low, high);
        }
        if constexpr (each<Element> == 4) {
          ctx.store(reinterpret_cast<std::uint64_t*>(to + i),
                    words[0] | static_cast<std::uint64_t>(words[1]) << 32);
        } else {
          ctx.store(reinterpret_cast<word4*>(to + i),
                    word4{words[0], words[1], words[2], words[3]});
        }
      }
    }
  }

 private:
  //! Values that move at a time.
  template <class Element>
  static constexpr int each = sizeof(Element) == 2 && Size % 8 == 0 ? 8 : 4;
};

}  // namespace tersum::inline v0
