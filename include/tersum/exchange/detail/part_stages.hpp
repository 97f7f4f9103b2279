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
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief How many parts hold codes of each chunk of the mean: the owner's, or those of all ranks, which are to be added.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t copies_of_mean(exchange_args<Codec, Element> const& args)
{
  return copying<Codec> ? static_cast<std::uint32_t>(args.world) : 1;
}

//! @brief By what codes in these parts are multiplied. Owners have sent means.
template <class Arithmetic, class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float share_of_copy(exchange_args<Codec, Element> const& args)
{
  return copying<Codec> ? Arithmetic::divide(1.0f, static_cast<float>(args.world)) : 1.0f;
}

//! @brief The scale of a chunk that does not travel: zero, or NaN where a gradient was not finite.
TERSUM_EXEC_CHECK_DISABLE
template <class Arithmetic, class Memory, class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float scale_of_unsent(
  [[maybe_unused]] Memory const& memory,
  [[maybe_unused]] exchange_args<Codec, Element> const& args,
  [[maybe_unused]] std::uint64_t chunk)
{
  if constexpr (selects<Codec>) {
    using scalar = typename Codec::norm_scalar;
    return Arithmetic::multiply(
      0.0f, to_float(memory.load(static_cast<scalar const*>(args.agreed) + chunk)));
  }
  return 0.0f;
}

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

//! @brief Decodes a chunk of the mean to the gradient: what its owner has encoded, or what all ranks have, in their order.
TERSUM_EXEC_CHECK_DISABLE
template <class Chunk>
TERSUM_INLINE void decode_chunk(Chunk& chunk)
{
  using math                      = typename Chunk::math;
  auto const& args                = chunk.args;
  std::uint32_t const copies      = copies_of_mean(args);
  std::uint32_t const* const part = chunk.part_of(args.parts.gathered, chunk.place.part);
  float scale                     = 0.0f;
  if (chunk.travels()) {
    scale = chunk.scale_in(part);
    for (std::uint32_t rank = 1; rank < copies; ++rank) {
      scale = math::add(scale, chunk.scale_in(chunk.part_of(args.parts.gathered, rank)));
    }
  }
  // If the budget pays for nothing, no norm has travelled.
  if (chunk.stays() && has_agreed(args)) {
    scale = scale_of_unsent<math>(chunk.memory(), args, chunk.number());
  }
  typename Chunk::values v{};
  float const share = math::multiply(share_of_copy<math>(args), Chunk::early);
  chunk.begin(part, share, v);
  for (std::uint32_t rank = 1; rank < copies; ++rank) {
    chunk.add(chunk.part_of(args.parts.gathered, rank), share, v);
  }
  chunk.give(scale, v);
}

}  // namespace tersum::inline v0::detail
