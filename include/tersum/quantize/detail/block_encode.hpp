// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's 32 coordinates, rounded and packed in the order of the wire: how `block_codes` and the library's kernels encode.

#pragma once

#include <tersum/block/thread_codes.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/block_round.hpp>
#include <tersum/quantize/dither.hpp>

namespace tersum::inline v0::detail {

//! @brief The wire words of 16 rounded values.
template <class Codec, class Context>
TERSUM_BODY void pack_fields(Context const& ctx,
                             std::uint32_t const (&fields)[8],
                             std::uint32_t* words)
{
  using lanes = typename Codec::lanes;
  using field = code_field<Codec, Context>;
  TERSUM_UNROLL
  for (int w = 0; w < lanes::bits / 2; ++w) {
    words[w] = thread_codes<lanes::bits>::template pack_word<field::shift == 8>(ctx, fields, w) +
               lanes::ones * (field::wanted - static_cast<std::uint32_t>(field::offset));
    if constexpr (!Codec::reducer_type::biased) { words[w] ^= lanes::signs; }
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
