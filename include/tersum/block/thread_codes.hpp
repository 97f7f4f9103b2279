// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a few bits in words: packed and unpacked in the registers of one thread, and moved between these and memory.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief `Count` codes of `Bits` bits in words that are all in the registers of one thread: code k has the bits k Bits .. of them.
//!
//! `block_codes`, `block_levels` and `thread_scaled_floats` pack by it. It needs no shared memory and no barrier, and threads may call
//! it alone. On sm_90 a code takes one instruction to `put` and one to `get`, and its sign one.
//!
//! @par Example
//! @snippet bench/plain_kernels.cuh pack
//! @tparam Bits   Of a code, 1 to 32.
//! @tparam Count  Codes of a thread. They fill whole words.
template <int Bits, int Count = 32>
struct thread_codes {
  static_assert(Bits > 0 && Bits <= 32 && Count > 0 && Count * Bits % 32 == 0,
                "tersum: thread_codes<Bits, Count> fills whole words with codes of 1 to 32 bits");

  static constexpr int words = Count * Bits / 32;
  using array                = std::uint32_t[static_cast<std::size_t>(words)];

  //! @brief Puts code k behind those before it: call it for all k from 0 on. Bits above the code do no harm.
  TERSUM_INLINE static constexpr void put(array& packed, int k, std::uint32_t code) noexcept
  {
    // Codes enter a word from above. Of one that ends in the next word, the lower bits do.
    int const word = k * Bits / 32, begin = k * Bits % 32, end = begin + Bits;
    int const enter = end > 32 ? 32 - begin : Bits;
    packed[word] =
      Bits == 32 ? code : (begin == 0 ? code : packed[word]) >> enter | code << (32 - enter);
    if (end > 32) { packed[word + 1] = code << (32 - Bits); }
  }

  //! @brief The same of a code whose highest bit is the sign of v[k].
  template <class Context>
  TERSUM_BODY static void put_signed(
    Context const& ctx, array& packed, int k, std::uint32_t code, float const* v)
  {
    put(packed, k, code);
    if ((k + 1) * Bits / 32 > k * Bits / 32) { put_signs(ctx, packed, k * Bits / 32, v); }
  }

  //! @brief What `put_signed` does when a word is complete: makes the highest bits of its codes the signs of values.
  template <class Context>
  TERSUM_BODY static void put_signs(Context const&, array& packed, int word, float const* v)
  {
    // Signs enter a word of their own from below.
    std::uint32_t signs = 0, places = 0;
    TERSUM_UNROLL
    for (int k = Count - 1; k >= 0; --k) {
      int const sign = k * Bits + Bits - 1;
      if (sign / 32 != word) { continue; }
      int const enter           = sign % 32 < Bits - 1 ? sign % 32 + 1 : Bits;
      std::uint32_t const value = Context::bits(v[k]);
      signs                     = (places == 0 ? value : signs) << enter | value >> (32 - enter);
      places |= 1u << sign % 32;
    }
    packed[word] = (packed[word] & ~places) | (signs & places);
  }

  //! @brief A word of half of 32 codes of 2, 4, 8, 16 or 32 bits, from fields of 16 bits, which have room for carries.
  //! @tparam High    Whether codes lie in the upper bytes of fields, and what is below them is dropped.
  //! @param fields   Number 2 q + k has code 4 q + k and above it code 4 q + k + 2 of the half.
  //! @param w        Of the half's Bits / 2 words.
  template <bool High, class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t pack_word(Context const&,
                                                           std::uint32_t const (&fields)[8],
                                                           int w)
  {
    // The codes of two fields, one field after the other or in turn.
    constexpr std::uint32_t serial = High ? 0x7531u : 0x6420u;
    constexpr std::uint32_t turn   = High ? 0x7351u : 0x6240u;
    if constexpr (Bits == 32) {
      constexpr unsigned low = High ? 0x4441u : 0x4410u;
      return Context::select_bytes(
        fields[w / 4 * 2 + w % 2], 0, low + static_cast<unsigned>(w % 4 / 2) * (High ? 2u : 0x22u));
    } else if constexpr (Bits == 16) {
      std::uint32_t const even = fields[w / 2 * 2], odd = fields[w / 2 * 2 + 1];
      if constexpr (High) {
        std::uint32_t const four = Context::select_bytes(even, odd, turn);
        return Context::select_bytes(four, 0, w % 2 == 0 ? 0x4140u : 0x4342u);
      } else {
        return Context::select_bytes(even, odd, w % 2 == 0 ? 0x5410u : 0x7632u);
      }
    } else if constexpr (Bits == 8) {
      return Context::select_bytes(fields[2 * w], fields[2 * w + 1], turn);
    } else if constexpr (Bits == 4) {
      std::uint32_t const* const four = fields + 4 * w;
      return Context::select_bytes(four[0], four[2], serial) +
             (Context::select_bytes(four[1], four[3], serial) << 4);
    } else {
      static_assert(Bits == 2);
      // Codes of half a word in the wrong order of nibbles, then bytes and nibbles in order.
      std::uint32_t eight[2];
      TERSUM_UNROLL
      for (int k = 0; k < 2; ++k) {
        std::uint32_t const* const four = fields + 4 * k;
        eight[k]                        = Context::select_bytes(four[0], four[2], turn) +
                   (Context::select_bytes(four[1], four[3], turn) << 2);
      }
      return Context::select_bytes(eight[0], eight[1], 0x5410u) +
             (Context::select_bytes(eight[0], eight[1], 0x7632u) << 4);
    }
  }

  //! @brief Code k, with bits of those behind it above.
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint32_t get(std::uint32_t const* packed,
                                                                 int k) noexcept
  {
    int const word = k * Bits / 32, shift = k * Bits % 32;
    std::uint32_t code = packed[word] >> shift;
    if (shift + Bits > 32) { code |= packed[word + 1] << (32 - shift); }
    return code;
  }

  //! @brief Of codes of 2, 4 or 8 bits in a word, those that lie at the same place of its bytes, as bytes.
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint32_t bytes_at(std::uint32_t word,
                                                                      int place) noexcept
  {
    return Bits == 8 ? word : word >> Bits * place & 0x01010101u * ((1u << Bits) - 1u);
  }

  //! @brief The words from memory, as many at a time as their alignment allows: 16 or 8 bytes where they are multiples of that.
  template <class Context>
  TERSUM_BODY static void load(Context const& ctx, std::uint32_t const* from, array& packed)
  {
    if constexpr (words % 4 == 0) {
      TERSUM_UNROLL
      for (int w = 0; w < words; w += 4) {
        word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + w));
        packed[w]        = four.x;
        packed[w + 1]    = four.y;
        packed[w + 2]    = four.z;
        packed[w + 3]    = four.w;
      }
    } else if constexpr (words % 2 == 0) {
      TERSUM_UNROLL
      for (int w = 0; w < words; w += 2) {
        std::uint64_t const two = ctx.load(reinterpret_cast<std::uint64_t const*>(from + w));
        packed[w]               = static_cast<std::uint32_t>(two);
        packed[w + 1]           = static_cast<std::uint32_t>(two >> 32);
      }
    } else {
      TERSUM_UNROLL
      for (int w = 0; w < words; ++w) { packed[w] = ctx.load(from + w); }
    }
  }

  //! @brief Writes the words as `load` reads them.
  template <class Context>
  TERSUM_BODY static void store(Context const& ctx, array const& packed, std::uint32_t* to)
  {
    if constexpr (words % 4 == 0) {
      TERSUM_UNROLL
      for (int w = 0; w < words; w += 4) {
        ctx.store_global(reinterpret_cast<word4*>(to + w),
                         word4{packed[w], packed[w + 1], packed[w + 2], packed[w + 3]});
      }
    } else if constexpr (words % 2 == 0) {
      TERSUM_UNROLL
      for (int w = 0; w < words; w += 2) {
        ctx.store(reinterpret_cast<std::uint64_t*>(to + w),
                  packed[w] | static_cast<std::uint64_t>(packed[w + 1]) << 32);
      }
    } else {
      TERSUM_UNROLL
      for (int w = 0; w < words; ++w) { ctx.store(to + w, packed[w]); }
    }
  }
};

}  // namespace tersum::inline v0
