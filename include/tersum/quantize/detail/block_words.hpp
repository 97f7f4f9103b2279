// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The 32 coordinates of a thread, in the order of the wire, to the words of their codes and back: what `block_codes` and the
//! library's own kernels are made of.

#pragma once

#include <tersum/quantize/detail/block_lane_sums.hpp>
#include <tersum/quantize/detail/block_round.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Rounds and packs; with feedback v becomes the codes.
//! @param number  Of these coordinates, by 32, over the whole payload if all chunks travelled: numbers the draws, two of
//!                them.
//! @param scale   Of the values.
//! @param step    `chunk_step::encode`: where it is 0, codes are 0, also of values that are not finite.
template <class Codec, class Context, class Values, int Bits>
TERSUM_BODY void encode_words(Context const& ctx,
                              Codec const& codec,
                              dither_key const& key,
                              std::uint32_t mask,
                              std::uint64_t number,
                              float scale,
                              float step,
                              Values& v,
                              std::uint32_t (&words)[Bits])
{
  // All ones if the step is above zero. A mask, because nvcc would make a selection for each word of a condition.
  std::uint32_t const kept =
    static_cast<std::uint32_t>(static_cast<std::int32_t>(0u - Context::bits(step)) >> 31);
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    std::uint32_t fields[8];
    round_sixteen(ctx,
                  codec,
                  key,
                  mask,
                  number * 2 | static_cast<unsigned>(half_of),
                  scale,
                  v + 16 * half_of,
                  fields);
    pack_fields<Codec>(ctx, fields, words + half_of * (Bits / 2));
    if constexpr (feeds_back<Codec>) {
      TERSUM_UNROLL
      for (int i = 0; i < 16; ++i) {
        v[16 * half_of + i] = rounded_value<Codec, Context>(fields, i);
      }
    }
  }
  TERSUM_UNROLL
  for (int w = 0; w < Bits; ++w) { words[w] = (words[w] & kept) | (Codec::zero_word & ~kept); }
}

//! Words that a thread stores at once, of the `Bits` words that its 32 codes take.
template <int Bits>
inline constexpr unsigned words_per_store = Bits == 2 ? 2 : 4;

//! @brief Writes a thread's words to a payload, from number `at` on, counted in `words_per_store`.
template <class Context, int Bits>
TERSUM_BODY void store_words(Context const& ctx,
                             std::uint32_t const (&words)[Bits],
                             std::uint32_t* payload,
                             std::uint64_t at)
{
  if constexpr (Bits == 2) {
    ctx.store(reinterpret_cast<std::uint64_t*>(payload) + at,
              words[0] | static_cast<std::uint64_t>(words[1]) << 32);
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < Bits; w += 4) {
      ctx.store(reinterpret_cast<word4*>(payload) + at + w / 4,
                word4{words[w], words[w + 1], words[w + 2], words[w + 3]});
    }
  }
}

//! @brief Loads a thread's words, and adds up the squares of their codes and the lanes at a limit. Without `exists` it
//! reads nothing, and the words are zeros.
template <class Codec, int Bits, class Context>
TERSUM_BODY void load_words(Context const& ctx,
                            std::uint32_t const* from,
                            bool exists,
                            std::uint32_t (&words)[Bits],
                            std::uint32_t& squares,
                            std::uint32_t& at_limit)
{
  constexpr int bits = Bits;
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = 0; }
  if (exists) {
    if constexpr (bits == 2) {
      std::uint64_t const both = ctx.load(reinterpret_cast<std::uint64_t const*>(from));
      words[0]                 = static_cast<std::uint32_t>(both);
      words[1]                 = static_cast<std::uint32_t>(both >> 32);
    } else {
      TERSUM_UNROLL
      for (int w = 0; w < bits; w += 4) {
        word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + w));
        words[w]         = four.x;
        words[w + 1]     = four.y;
        words[w + 2]     = four.z;
        words[w + 3]     = four.w;
      }
    }
  }
  if constexpr (saturates<Codec>) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { inspect_word<Codec>(ctx, words[w], squares, at_limit); }
  }
}

//! @brief Codes, or sums of the codes of `world` ranks, as floats of the same integers.
template <class Codec, class Context, int Bits>
TERSUM_BODY void decode_words(Context const& ctx,
                              std::uint32_t const (&words)[Bits],
                              int world,
                              float (&v)[32])
{
  using values = lane_values<Codec, true>;
  values::unpack(ctx, words, v);
  float const zero = values::zero(world);
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
}

}  // namespace tersum::inline v0::detail
