// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The words of a thread's 32 codes between memory and registers, with what is counted of sums: kernel body parts.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::detail {

//! Words that a thread stores at once, of the `Bits` words that its 32 codes take.
template <int Bits>
inline constexpr unsigned words_per_store = Bits == 2 ? 2 : 4;

//! @brief Stores the words of a thread's codes, as `load_codes` loads them.
template <std::size_t Bits, class Context>
TERSUM_BODY void store_codes(Context const& ctx,
                             std::uint32_t* to,
                             std::uint32_t const (&words)[Bits])
{
  constexpr int bits = static_cast<int>(Bits);
  if constexpr (bits % 4 == 0) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 4) {
      ctx.store_global(reinterpret_cast<word4*>(to + w),
                       word4{words[w], words[w + 1], words[w + 2], words[w + 3]});
    }
  } else if constexpr (bits % 2 == 0) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 2) {
      ctx.store(reinterpret_cast<std::uint64_t*>(to + w),
                words[w] | static_cast<std::uint64_t>(words[w + 1]) << 32);
    }
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { ctx.store(to + w, words[w]); }
  }
}

//! @brief Writes a thread's words to a payload, from number `at` on, counted in `words_per_store`.
template <class Context, std::size_t Bits>
TERSUM_BODY void store_words(Context const& ctx,
                             std::uint32_t const (&words)[Bits],
                             std::uint32_t* payload,
                             std::uint64_t at)
{
  // Counted in stores, not in words, which would take an instruction more.
  constexpr int bits = static_cast<int>(Bits);
  if constexpr (bits == 2) {
    ctx.store(reinterpret_cast<std::uint64_t*>(payload) + at,
              words[0] | static_cast<std::uint64_t>(words[1]) << 32);
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 4) {
      ctx.store(reinterpret_cast<word4*>(payload) + at + w / 4,
                word4{words[w], words[w + 1], words[w + 2], words[w + 3]});
    }
  }
}

//! @brief Adds the squares of the codes of a word to a sum, and the number of its lanes at a limit to a count.
template <class Codec, class Context>
TERSUM_BODY void inspect_word(Context const&,
                              std::uint32_t word,
                              std::uint32_t& squares,
                              std::uint32_t& at_limit)
{
  using lanes               = typename Codec::lanes;
  std::uint32_t const minus = (word >> (lanes::bits - 1)) & lanes::ones;
  std::uint32_t const mask  = (minus << lanes::bits) - minus;  // bits is below 32
  std::uint32_t const size  = (word ^ mask) + minus;           // magnitudes, lane by lane
  at_limit += Context::population((size + lanes::ones) & lanes::signs);
  if constexpr (tracks<Codec>) {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      std::uint32_t const bytes =
        interleaved == 1 ? size : (size >> (lanes::bits * s)) & (0x01010101u * lanes::full);
      squares = Context::dot_bytes(bytes, bytes, squares);
    }
  }
}

//! @brief Loads the words of a thread's 32 codes, as many at a time as their alignment allows.
template <std::size_t Bits, class Context>
TERSUM_BODY void load_codes(Context const& ctx,
                            std::uint32_t const* from,
                            std::uint32_t (&words)[Bits])
{
  constexpr int bits = static_cast<int>(Bits);
  if constexpr (bits % 4 == 0) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 4) {
      word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + w));
      words[w]         = four.x;
      words[w + 1]     = four.y;
      words[w + 2]     = four.z;
      words[w + 3]     = four.w;
    }
  } else if constexpr (bits % 2 == 0) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 2) {
      std::uint64_t const two = ctx.load(reinterpret_cast<std::uint64_t const*>(from + w));
      words[w]                = static_cast<std::uint32_t>(two);
      words[w + 1]            = static_cast<std::uint32_t>(two >> 32);
    }
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { words[w] = ctx.load(from + w); }
  }
}

//! @brief Loads a thread's words, and adds up the squares of their codes and the lanes at a limit. Without `exists` it
//! reads nothing, and the words are zeros.
template <class Codec, std::size_t Bits, class Context>
TERSUM_BODY void load_words(Context const& ctx,
                            std::uint32_t const* from,
                            bool exists,
                            std::uint32_t (&words)[Bits],
                            std::uint32_t& squares,
                            std::uint32_t& at_limit)
{
  constexpr int bits = static_cast<int>(Bits);
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = 0; }
  if (exists) { load_codes(ctx, from, words); }
  if constexpr (saturates<Codec>) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { inspect_word<Codec>(ctx, words[w], squares, at_limit); }
  }
}

}  // namespace tersum::inline v0::detail
