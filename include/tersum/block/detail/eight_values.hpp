// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Eight consecutive values between memory and registers: kernel body parts.

#pragma once

#include <tersum/config.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Loads eight consecutive values whose address is a multiple of 16 bytes.
template <class Context, class Element>
TERSUM_BODY void load_eight(Context const& ctx, Element const* from, float* v)
{
  if constexpr (sizeof(Element) == 4) {
    TERSUM_UNROLL
    for (int half_of = 0; half_of < 2; ++half_of) {
      word4 const four   = ctx.load(reinterpret_cast<word4 const*>(from) + half_of);
      v[4 * half_of]     = Context::from_bits(four.x);
      v[4 * half_of + 1] = Context::from_bits(four.y);
      v[4 * half_of + 2] = Context::from_bits(four.z);
      v[4 * half_of + 3] = Context::from_bits(four.w);
    }
  } else {
    word4 const four             = ctx.load(reinterpret_cast<word4 const*>(from));
    std::uint32_t const words[4] = {four.x, four.y, four.z, four.w};
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      v[2 * i]     = Context::value(Element{static_cast<std::uint16_t>(words[i])});
      v[2 * i + 1] = Context::value(Element{static_cast<std::uint16_t>(words[i] >> 16)});
    }
  }
}

//! @brief Stores eight consecutive values at an address that is a multiple of 16 bytes. If they are means, `Finite` rounds
//! to the largest half instead of to infinity.
template <bool Finite = false, class Context, class Element>
TERSUM_BODY void store_eight(Context const& ctx, Element* to, float const* v)
{
  if constexpr (sizeof(Element) == 4) {
    TERSUM_UNROLL
    for (int half_of = 0; half_of < 2; ++half_of) {
      ctx.store(reinterpret_cast<word4*>(to) + half_of,
                word4{Context::bits(v[4 * half_of]),
                      Context::bits(v[4 * half_of + 1]),
                      Context::bits(v[4 * half_of + 2]),
                      Context::bits(v[4 * half_of + 3])});
    }
  } else {
    std::uint32_t words[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      words[i] = Finite ? Context::template pack_finite<Element>(v[2 * i], v[2 * i + 1])
                        : Context::template pack<Element>(v[2 * i], v[2 * i + 1]);
    }
    ctx.store(reinterpret_cast<word4*>(to), word4{words[0], words[1], words[2], words[3]});
  }
}

//! @brief Rounds eight values to the nearest elements that are finite, as `store_eight<true>` does. NaN stays NaN.
template <class Element, class Context>
TERSUM_BODY void round_finite(Context const&, float (&v)[8], Element (&rounded)[8])
{
  TERSUM_UNROLL
  for (int i = 0; i < 8; i += 2) {
    if constexpr (sizeof(Element) == 2) {
      std::uint32_t const word = Context::template pack_finite<Element>(v[i], v[i + 1]);
      rounded[i]               = Element{static_cast<std::uint16_t>(word)};
      rounded[i + 1]           = Element{static_cast<std::uint16_t>(word >> 16)};
      v[i]                     = Context::value(rounded[i]);
      v[i + 1]                 = Context::value(rounded[i + 1]);
    } else {
      rounded[i]     = v[i];
      rounded[i + 1] = v[i + 1];
    }
  }
}

//! @brief Stores eight elements, sixteen bytes at a time where the address is a multiple of sixteen.
template <class Element, class Context>
TERSUM_BODY void store_elements(Context const& ctx, Element* to, Element const (&v)[8])
{
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { ctx.store(to + j, v[j]); }
  } else if constexpr (sizeof(Element) == 2) {
    std::uint32_t words[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      words[i] = v[2 * i].bits | static_cast<std::uint32_t>(v[2 * i + 1].bits) << 16;
    }
    ctx.store(reinterpret_cast<word4*>(to), word4{words[0], words[1], words[2], words[3]});
  } else {
    store_eight(ctx, to, v);
  }
}

//! @brief Up to eight consecutive values, sixteen bytes at a time where they can be; zeros beyond `count`.
template <class Element, class Context>
TERSUM_BODY void load_some(Context const& ctx, Element const* from, int count, float (&v)[8])
{
  if (count == 8 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
    load_eight(ctx, from, v);
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = j < count ? Context::value(ctx.load(from + j)) : 0.0f; }
  }
}

template <class Element, class Context>
TERSUM_BODY void store_some(Context const& ctx, Element* to, int count, float const (&v)[8])
{
  if (count == 8 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    store_eight(ctx, to, v);
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      if (j < count) { ctx.store(to + j, Context::template element<Element>(v[j])); }
    }
  }
}

}  // namespace tersum::inline v0::detail
