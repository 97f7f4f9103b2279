// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's 32 coordinates, rounded and packed in the order of the wire: how `block_codes` and the library's kernels encode.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/block_round.hpp>
#include <tersum/quantize/dither.hpp>

namespace tersum::inline v0::detail {

//! @brief The wire words of 16 rounded values.
template <class Codec, class Context>
TERSUM_BODY void pack_fields(Context const&, std::uint32_t const (&fields)[8], std::uint32_t* words)
{
  using lanes         = typename Codec::lanes;
  using field         = code_field<Codec, Context>;
  constexpr bool high = field::shift == 8;  // codes lie in byte 1 or 0
  // The codes of two words, one word after the other or in turn.
  constexpr std::uint32_t serial = high ? 0x7531u : 0x6420u;
  constexpr std::uint32_t turn   = high ? 0x7351u : 0x6240u;
  constexpr int count            = lanes::bits / 2;
  TERSUM_UNROLL
  for (int w = 0; w < count; ++w) {
    std::uint32_t& word = words[w];
    if constexpr (lanes::bits == 32) {
      std::uint32_t const two = fields[w / 4 * 2 + w % 2];
      constexpr unsigned low  = high ? 0x4441u : 0x4410u;
      word =
        Context::select_bytes(two, 0, low + static_cast<unsigned>(w % 4 / 2) * (high ? 2u : 0x22u));
    } else if constexpr (lanes::bits == 16) {
      std::uint32_t const even = fields[w / 2 * 2], odd = fields[w / 2 * 2 + 1];
      if constexpr (high) {
        std::uint32_t const four = Context::select_bytes(even, odd, turn);
        word                     = Context::select_bytes(four, 0, w % 2 == 0 ? 0x4140u : 0x4342u);
      } else {
        word = Context::select_bytes(even, odd, w % 2 == 0 ? 0x5410u : 0x7632u);
      }
    } else if constexpr (lanes::bits == 8) {
      word = Context::select_bytes(fields[2 * w], fields[2 * w + 1], turn);
    } else if constexpr (lanes::bits == 4) {
      std::uint32_t const* const four = fields + 4 * w;
      word                            = Context::select_bytes(four[0], four[2], serial) +
             (Context::select_bytes(four[1], four[3], serial) << 4);
    } else {
      // Codes of half a word in the wrong order of nibbles, then bytes and nibbles in order.
      std::uint32_t eight[2];
      TERSUM_UNROLL
      for (int k = 0; k < 2; ++k) {
        std::uint32_t const* const four = fields + 4 * k;
        eight[k]                        = Context::select_bytes(four[0], four[2], turn) +
                   (Context::select_bytes(four[1], four[3], turn) << 2);
      }
      word = Context::select_bytes(eight[0], eight[1], 0x5410u) +
             (Context::select_bytes(eight[0], eight[1], 0x7632u) << 4);
    }
    word += lanes::ones * (field::wanted - static_cast<std::uint32_t>(field::offset));
    if constexpr (!Codec::reducer_type::biased) { word ^= lanes::signs; }
  }
}

//! @brief All ones if the step is above zero. A mask, because nvcc would make a selection for each word of a condition.
template <class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t kept_mask(float step)
{
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(0u - Context::bits(step)) >> 31);
}

//! @brief `encode_words` of a codec that `rounds_alike`, on threads each of which has a level of its own: all of them round
//! together. Then it calls body(words) with the words of this thread's level, not on level 0.
template <class Codec, class Context, class Body>
TERSUM_BODY void encode_on_level(Context const& ctx,
                                 Codec const& codec,
                                 std::uint32_t level,
                                 dither_key const& key,
                                 std::uint32_t mask,
                                 std::uint64_t number,
                                 float scale,
                                 float (&v)[32],
                                 Body const& body)
{
  code_grid grid{};
  at_level(codec, level, [&](auto const& chosen) {
    grid = code_grid::of<std::remove_cvref_t<decltype(chosen)>, Context>();
  });
  std::uint32_t fields[2][8];
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    std::uint64_t const draw = number * 2 | static_cast<unsigned>(half_of);
    round_sixteen(ctx, codec, key, mask, draw, scale, v + 16 * half_of, fields[half_of], grid);
    TERSUM_UNROLL
    for (int i = 0; i < 16; ++i) {
      v[16 * half_of + i] = rounded_value<Codec, Context>(fields[half_of], i, grid);
    }
  }
  if (level == 0) { return; }
  std::uint32_t const kept = kept_mask<Context>(scale);
  at_level(codec, level, [&](auto const& chosen) {
    using level_codec  = std::remove_cvref_t<decltype(chosen)>;
    constexpr int bits = level_codec::lanes::bits;
    std::uint32_t words[extent(bits)];
    pack_fields<level_codec>(ctx, fields[0], words);
    pack_fields<level_codec>(ctx, fields[1], words + bits / 2);
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      words[w] = (words[w] & kept) | (level_codec::zero_word & ~kept);
    }
    body(words);
  });
}

//! @brief Rounds and packs; v becomes the codes.
//! @param number  Of these coordinates, by 32, over the whole payload if all chunks travelled: numbers two draws.
//! @param scale   `chunk_step::encode`: where it is 0, codes are 0, also of values that are not finite.
template <class Codec, class Context, std::size_t Bits>
TERSUM_BODY void encode_words(Context const& ctx,
                              Codec const& codec,
                              dither_key const& key,
                              std::uint32_t mask,
                              std::uint64_t number,
                              float scale,
                              float (&v)[32],
                              std::uint32_t (&words)[Bits])
{
  constexpr int bits       = static_cast<int>(Bits);
  std::uint32_t const kept = kept_mask<Context>(scale);
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
    pack_fields<Codec>(ctx, fields, words + half_of * (bits / 2));
    TERSUM_UNROLL
    for (int i = 0; i < 16; ++i) { v[16 * half_of + i] = rounded_value<Codec, Context>(fields, i); }
  }
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = (words[w] & kept) | (Codec::zero_word & ~kept); }
}

}  // namespace tersum::inline v0::detail
