// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is done to a chunk in hand under forms with parts, once for rows of vectors and for lanes of threads: `part_in_rows`
//! and `chunk_in_lanes`; and what is asked of them one value after the other.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Adds up what all ranks sent of an owned chunk, and what the owner kept of it.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void add_ranks(Chunk const& chunk, typename Chunk::values& v)
{
  chunk.begin_with_kept(v);
  for (std::uint32_t rank = 0; rank < chunk.map.world; ++rank) {
    chunk.add(chunk.sent_by(rank), 1.0f, v);
  }
}

//! @brief Adds up what all ranks sent of an owned chunk, and encodes the mean.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void recompress_chunk(Chunk const& chunk)
{
  using dither     = typename second_dither_of<typename Chunk::dither_type>::type;
  auto const& args = chunk.args;
  dither_key key   = key_of(args);
  key.rank         = second_rank;
  typename Chunk::values v;
  add_ranks(chunk, v);
  auto const& mean = chunk.of_mean();
  mean.template encode<dither>(
    v, key, args.parts.share, mean.part_of(args.parts.gathered, args.rank));
}

//! @brief Keeps for its owner what the encoding of a chunk of the mean lost.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void keep_lost_of_mean(Chunk const& chunk)
{
  auto const& args = chunk.args;
  typename Chunk::values v;
  add_ranks(chunk, v);
  float const back = -static_cast<float>(args.world);
  auto const& mean = chunk.of_mean();
  mean.add(mean.part_of(args.parts.gathered, args.rank), back, v);
  chunk.keep_owned(v);
}

//! @brief Decodes what all ranks sent of a chunk of this rank's shard, and writes the mean. Flags what is not finite.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void add_chunk_of_shard(Chunk const& chunk)
{
  auto const& args  = chunk.args;
  float const share = Chunk::math::divide(1.0f, static_cast<float>(args.world));
  typename Chunk::values v{};
  bool finite = true;
  for (std::uint32_t rank = 0; rank < chunk.map.world; ++rank) {
    std::uint32_t const* const part = chunk.sent_by(rank);
    chunk.add(part, share, v);
    if (chunk.travels()) { finite = finite && is_finite(chunk.scale_in(part)); }
  }
  chunk.give_to_shard(finite, v);
}

//! @brief How many parts, one behind the other, hold codes of a chunk of the mean: that of its owner, or those of all ranks, which are
//! added.
//! @{
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE int parts_of_mean(exchange_args<Codec, Element> const&)
{
  return 1;
}
template <copying Codec, class Element>
[[nodiscard]] TERSUM_INLINE int parts_of_mean(exchange_args<Codec, Element> const& args)
{
  return args.world;
}
//! @}

//! @brief Decodes these to zeros.
//! @{
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, class Element, class Chunk>
TERSUM_INLINE void decode_mean(exchange_args<Codec, Element> const&,
                               Chunk const& chunk,
                               std::uint32_t const* part,
                               typename Chunk::values& v)
{
  chunk.begin(part, Chunk::early, v);
}
TERSUM_EXEC_CHECK_DISABLE
template <copying Codec, class Element, class Chunk>
TERSUM_INLINE void decode_mean(exchange_args<Codec, Element> const& args,
                               Chunk const& chunk,
                               std::uint32_t const* part,
                               typename Chunk::values& v)
{
  float const share = Chunk::math::multiply(args.parts.share, Chunk::early);
  TERSUM_NO_UNROLL
  for (int rank = 0; rank < args.world; ++rank) {
    chunk.add(part, share, v);
    part += args.parts.part_words;
  }
}
//! @}

//! @brief Decodes a chunk of the mean to the gradient.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void decode_chunk(Chunk& chunk)
{
  auto const& args                = chunk.args;
  std::uint32_t const* const part = chunk.part_of(args.parts.gathered, chunk.place.part);
  float scale                     = 0.0f;
  if (chunk.travels()) {
    scale           = chunk.scale_in(part);
    int const parts = parts_of_mean(args);
    TERSUM_NO_UNROLL
    for (int i = 1; i < parts; ++i) {
      auto const other = chunk.place.part + static_cast<std::uint32_t>(i);
      scale = Chunk::math::add(scale, chunk.scale_in(chunk.part_of(args.parts.gathered, other)));
    }
  }
  // A chunk that does not travel is zero, or NaN where a gradient was not finite. If the budget pays for nothing, no norm has travelled.
  if (chunk.stays() && has_agreed(args)) {
    using scalar           = typename std::remove_cvref_t<decltype(args.codec)>::norm_scalar;
    auto const* const norm = static_cast<scalar const*>(args.agreed) + chunk.number();
    scale                  = Chunk::math::multiply(0.0f, to_float(chunk.memory().load(norm)));
  }
  typename Chunk::values v{};
  decode_mean(args, chunk, part, v);
  chunk.give(scale, v);
}

}  // namespace tersum::inline v0::detail
