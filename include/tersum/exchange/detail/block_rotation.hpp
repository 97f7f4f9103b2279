// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What of a rotation is done in the loaded arrangement, signs or all of it, and loading with it: kernel body parts.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_metric.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What of a rotation is done in the loaded arrangement, before `to_wire` or behind `to_loaded`: signs, or, in memory, all of it.
//! @param storage  Of the chunk's tile.
//! @tparam Forward       Or back.
//! @tparam ByPredicates  See `block_hadamard::apply_signs`.
//! @param flips          Whether a packed form flips any.
template <bool Forward, std::uint32_t ByPredicates = 0, class Codec, class Element, class Context>
TERSUM_BODY void rotate_loaded(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               own_chunk<Codec> const& mine,
                               [[maybe_unused]] float* storage,
                               float (&v)[32],
                               [[maybe_unused]] bool flips = true)
{
  if constexpr (Codec::rotates_in_memory) {
    own_chunk<Codec>::hadamard::template rotate<Forward>(
      ctx, args.codec.rotator, mine, args.header->sign_key, storage, v);
  } else if constexpr (Codec::rotates_chunks) {
    own_chunk<Codec>::hadamard::template apply_signs<ByPredicates>(
      ctx, mine, args.header->sign_key, v, flips);
  }
}

//! @brief Whether what decodes flips signs by predicates, see `block_hadamard::apply_signs`. At edges and in a metric it holds too much else.
template <bool Edge, class Codec>
inline constexpr bool flips_by_predicates = !Edge && !in_metric<Codec>;

//! @brief This thread's 32 coordinates of 16 bits in the loaded arrangement, two neighbours a word, as they are.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_pairs(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            own_chunk<Codec> const& mine,
                            std::uint32_t (&pairs)[16])
{
  constexpr int quarter      = Codec::chunk_size / 4;
  Element const* const chunk = args.gradient + mine.offset;
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if (Edge) {
      std::uint32_t eight[8];
      edge_rows<Codec>{mine}.load(ctx, r, eight, [&](unsigned at) {
        return static_cast<std::uint32_t>(ctx.load(chunk + at + r * quarter).bits);
      });
      TERSUM_UNROLL
      for (int j = 0; j < 4; ++j) { pairs[4 * r + j] = eight[2 * j] | eight[2 * j + 1] << 16; }
    } else {
      word4 four{};
      if (mine.active) {
        four = ctx.load(reinterpret_cast<word4 const*>(chunk + mine.thread * 8 + r * quarter));
      }
      pairs[4 * r]     = four.x;
      pairs[4 * r + 1] = four.y;
      pairs[4 * r + 2] = four.z;
      pairs[4 * r + 3] = four.w;
    }
  }
}

//! @brief `block_hadamard::apply_signs` for two coordinates of 16 bits a word.
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

//! @brief `load_coordinates` in the units of the metric, then what of the rotation comes before `to_wire`: the signs, which 16-bit values take two at a time, in
//! words, or, in memory, all of it.
//! @param storage  Of the chunk's tile.
//! @tparam Edge, Regular  As `find_chunk` has them.
template <bool Edge, bool Regular = !Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_signed(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             own_chunk<Codec> const& mine,
                             [[maybe_unused]] float* storage,
                             float (&v)[32])
{
  if constexpr (Codec::rotates_chunks && sizeof(Element) == 2 && !feeds_back<Codec> &&
                !in_metric<Codec>) {
    std::uint32_t pairs[16];
    load_as_edge<Edge, Regular>(
      ctx, args, mine, [&]<bool AtEdge>() { load_pairs<AtEdge>(ctx, args, mine, pairs); });
    apply_signs(ctx, args.header->sign_key, mine, pairs);
    TERSUM_UNROLL
    for (int p = 0; p < 16; ++p) {
      v[2 * p]     = Context::value(Element::from_bits(static_cast<std::uint16_t>(pairs[p])));
      v[2 * p + 1] = Context::value(Element::from_bits(static_cast<std::uint16_t>(pairs[p] >> 16)));
    }
  } else {
    load_as_edge<Edge, Regular>(ctx, args, mine, [&]<bool AtEdge>() {
      load_coordinates<AtEdge>(ctx, args, mine, v);
      divide_by_scales<AtEdge>(ctx, args, mine, v);
    });
    rotate_loaded<true, ~0u>(ctx, args, mine, storage, v);
  }
}

}  // namespace tersum::inline v0::detail
