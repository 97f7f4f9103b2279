// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk of 16-bit values in registers, two neighbours a word: kernel body parts.

#pragma once

#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/random/sign_bits.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief This thread's 32 coordinates of 16 bits in the loaded arrangement, two neighbours a word, as they are.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_pairs(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            own_chunk<Codec> const& mine,
                            std::uint32_t (&pairs)[16])
{
  constexpr int quarter      = Codec::chunk_size / 4;
  Element const* const first = args.gradient + mine.offset + mine.thread * 8;
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    word4 four{};
    if constexpr (!Edge) {
      if (mine.active) { four = ctx.load(reinterpret_cast<word4 const*>(first + r * quarter)); }
    }
    pairs[4 * r]     = four.x;
    pairs[4 * r + 1] = four.y;
    pairs[4 * r + 2] = four.z;
    pairs[4 * r + 3] = four.w;
    if constexpr (Edge) {
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        if (exists(mine, r, j)) {
          pairs[4 * r + j / 2] |=
            static_cast<std::uint32_t>(ctx.load(first + (r * quarter + j)).bits) << 16 * (j % 2);
        }
      }
    }
  }
}

//! @brief `apply_signs` for two coordinates of 16 bits a word.
template <class Codec, class Context>
TERSUM_BODY void apply_signs(Context const&,
                             std::uint64_t key,
                             own_chunk<Codec> const& mine,
                             std::uint32_t (&pairs)[16])
{
  std::uint32_t const word = sign_bits(mine.chunk * (Codec::chunk_size / 32) + mine.thread, key);
  // Bit i in the low half and bit i + 1 in the high one, so that a shift brings both signs of a pair to their places.
  std::uint32_t const spread[2] = {Context::select_bytes(word, word >> 1, 0x5410u),
                                   Context::select_bytes(word, word >> 1, 0x7632u)};
  TERSUM_UNROLL
  for (int p = 0; p < 16; ++p) { pairs[p] ^= spread[p / 8] << (15 - p % 8 * 2) & 0x80008000u; }
}

//! @brief `load_coordinates`, then what of the rotation comes before `to_wire`: the signs, which 16-bit values take two at a time, in
//! words, or, in memory, all of it.
//! @param storage  Of the chunk's tile.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_signed(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             own_chunk<Codec> const& mine,
                             [[maybe_unused]] float* storage,
                             float (&v)[32])
{
  if constexpr (Codec::rotates_chunks && sizeof(Element) == 2 && !feeds_back<Codec>) {
    std::uint32_t pairs[16];
    load_pairs<Edge>(ctx, args, mine, pairs);
    apply_signs(ctx, args.header->sign_key, mine, pairs);
    TERSUM_UNROLL
    for (int p = 0; p < 16; ++p) {
      v[2 * p]     = Context::value(Element{static_cast<std::uint16_t>(pairs[p])});
      v[2 * p + 1] = Context::value(Element{static_cast<std::uint16_t>(pairs[p] >> 16)});
    }
  } else {
    load_coordinates<Edge>(ctx, args, mine, v);
    begin_forward(ctx, args, mine, storage, v);
  }
}

}  // namespace tersum::inline v0::detail
