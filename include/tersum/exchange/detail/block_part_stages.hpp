// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload rounds of codecs that send parts: of two shots, of shards that a rank decodes and adds, and of shards that it publishes.
//! Kernel bodies.

#pragma once

#include <tersum/block/block_values.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_basis.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_parts.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/part_stages.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int part_threads = tuning_of<Context>.cuda.part_threads;

//! @brief The map of all parts that this rank sends, or of the parts of the mean.
//! @{
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto map_of_parts(exchange_args<Codec, Element> const& args,
                                              std::uint32_t const*)
{
  return make_part_map(args);
}
template <ways_differ Codec, class Element>
[[nodiscard]] TERSUM_INLINE part_map map_of_parts(exchange_args<Codec, Element> const& args,
                                                  std::uint32_t const* parts)
{
  // Parts of the mean never lie in the place of those that are sent.
  return parts == args.parts.gathered ? part_map{make_mean_map(args)} : make_part_map(args);
}
//! @}

//! @brief Clears the words between codes and scales: of all parts that this rank sends, or of its own part of the mean.
template <class Codec, class Element, class Context>
TERSUM_BODY void clear_parts(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint32_t* parts,
                             std::uint32_t first)
{
  auto const map             = map_of_parts(args, parts);
  std::uint32_t const part   = first + ctx.block_rank();
  std::uint32_t* const words = parts + map.begin(part);
  part_rest const rest       = map.rest_of(part);
  for (std::uint64_t at = rest.begin + ctx.thread_rank(); at < rest.end;
       at += part_threads<Context>) {
    ctx.store(words + at, 0u);
  }
}

//! @brief Encodes the gradient, for all parts, in one pass.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void encode_parts(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              std::uint64_t first_chunk)
{
  using chunk = chunk_in_lanes<Edge, Edge, Codec, Element, Context>;
  in_found_chunk<chunk, true>(ctx, args, make_part_map(args), first_chunk, [&](chunk& own) {
    float v[32];
    load_signed<Edge>(ctx, args, own.mine, own.storage, v);
    if (chunk::rotates) {
      chunk::hadamard::to_wire(ctx, v, own.storage, own.mine.thread, own.mine.first);
    }
    own.template encode<typename Codec::dither_type>(
      v, key_of(args), 1.0f, own.part_of(args.payload, own.place.part));
  });
}

//! @brief Calls work(chunk) with a chunk that this rank owns, unless no thread that synchronizes with this one has any. What is done
//! to such chunks lies in `part_stages.hpp`.
//! @tparam Chunk  A `chunk_in_lanes`, or what derives from it and knows of another `sent_by`.
template <class Chunk, class Work>
TERSUM_BODY void in_owned_chunk(typename Chunk::context_type const& ctx,
                                typename Chunk::args_type const& args,
                                Work const& work)
{
  Chunk own{ctx, args};
  own.find_owned();
  if (all_idle(ctx, own.mine)) { return; }
  own.locate();
  work(own);
}

//! @brief Sets the flag of the exchange if a chunk of the mean is not finite.
template <class Codec, class Element, class Context>
TERSUM_BODY void inspect_chunk(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t chunk)
{
  if (chunk >= args.chunks) { return; }
  auto const map         = make_mean_map(args);
  part_place const place = args.selection.find_in(map, chunk);
  if (place.level == 0) { return; }
  auto const parts = static_cast<unsigned>(parts_of_mean(args));
  for (unsigned i = 0; i < parts; ++i) {
    std::uint32_t const* const part = args.parts.gathered + map.begin(place.part + i);
    float const scale = Context::from_bits(ctx.load(part + map.scale_word(place.index)));
    if (!is_finite(scale)) { raise_flag(args); }
  }
}

//! @brief Writes what this rank's encoding lost to its residual.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void keep_residual(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using chunk = chunk_in_lanes<Edge, Edge, Codec, Element, Context>;
  in_found_chunk<chunk>(ctx, args, make_part_map(args), first_chunk, [&](chunk& own) {
    if (step_is_poisoned(args)) { return; }
    float v[32]                     = {};
    std::uint32_t const* const part = own.part_of(args.payload, own.place.part);
    own.begin(part, own.early, v);
    own.rotate_back(v, own.late);
    multiply_by_scales<Edge>(ctx, args, own.mine, v);
    float given[32];
    load_coordinates<Edge>(ctx, args, own.mine, given);
    // No rank of a sharded exchange knows of values in all shards that are not finite, and others may have lost them.
    bool const encoded = own.mine.active && own.place.level > 0;
    bool const keeps   = !encoded || is_finite(own.scale_in(part));
    keep_lost<Edge>(
      ctx,
      args,
      own.mine,
      given,
      [&](int i, float& value) {
        if (own.place.level > 0) { value = Context::subtract(value, v[i]); }
      },
      keeps);
  });
}

//! @brief `decode_chunk` of the chunks of the gradient, in one pass.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_parts(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              std::uint64_t first_chunk)
{
  auto const map = make_mean_map(args);
  using chunk =
    chunk_in_lanes<Edge, Edge, Codec, Element, Context, std::remove_const_t<decltype(map)>>;
  in_found_chunk<chunk>(ctx, args, map, first_chunk, [](chunk& own) { decode_chunk(own); });
}

//! @brief Copies the chunk that a part shares with parts before it, from that of the rank that encoded it. One block a part.
template <class Codec, class Element, class Context>
TERSUM_BODY void share_cut_chunk(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  auto const map           = make_part_map(args);
  std::uint32_t const part = ctx.block_rank();
  if (map.chunks_of(part) == 0) { return; }
  part_place const here = map.of_index(part, 0);
  part_place const from = map.of_chunk(static_cast<std::uint32_t>(map.chunk_of(part, 0)));
  if (from.part == part) { return; }
  std::uint32_t* const to            = args.payload + map.begin(part);
  std::uint32_t const* const encoded = args.payload + map.begin(from.part);
  for (std::uint32_t at = ctx.thread_rank(); at < map.chunk_words; at += ctx.block_threads()) {
    ctx.store(to + here.word + at, ctx.load(encoded + from.word + at));
  }
  if (ctx.thread_rank() == 0) {
    ctx.store(to + map.scale_word(0), ctx.load(encoded + map.scale_word(from.index)));
  }
}

//! @brief Finds a chunk of this rank's shard, with its place in the shard.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void find_published(chunk_in_lanes<true, InRows, Codec, Element, Context>& own)
{
  own.find_owned();
  if (!own.mine.active) { return; }
  own.locate();
  own.mine.offset -= own.args.parts.begin;
}

//! @brief This thread's 32 coordinates of a chunk of the shard as they are encoded, loaded arrangement.
//! @tparam InRows  Whether lanes load neighbours, as the kernels for shards that are not aligned do. All threads of the warp call it then.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void load_published(chunk_in_lanes<true, InRows, Codec, Element, Context> const& own,
                                float (&v)[32])
{
  auto const& args          = own.args;
  Element const* const from = args.gradient + own.mine.offset;
  auto const other          = joined_array(args, own.mine.offset);
  auto const join           = joining<Context>(args);
  bool const at_once        = moves_in_eights<Codec::chunk_size>(from, own.mine.length) &&
                       reinterpret_cast<std::uintptr_t>(other) % 16 == 0;
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if constexpr (InRows) {
      load_eights<true>(own.ctx, own.mine, from, r, v + 8 * r, other, join);
    } else if (at_once) {
      load_quarter<false>(own.ctx, own.mine, own.mine.active, from, r, v + 8 * r, other, join);
    } else {
      load_quarter<true>(own.ctx, own.mine, own.mine.active, from, r, v + 8 * r, other, join);
    }
  }
}

//! @brief Its place among the values of all ranks, where scales of a metric lie.
template <bool InRows, class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY own_chunk<Codec> in_values(
  chunk_in_lanes<true, InRows, Codec, Element, Context> const& own)
{
  own_chunk<Codec> mine = own.mine;
  mine.offset += own.args.parts.begin;
  return mine;
}

//! @brief Encodes this rank's shard to its part.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void publish_part(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  chunk_in_lanes<true, InRows, Codec, Element, Context> own{ctx, args};
  find_published(own);
  if (all_idle(ctx, own.mine)) { return; }
  float v[32];
  load_published<InRows>(own, v);
  divide_by_scales<true, InRows>(ctx, args, in_values(own), v);
  own.to_wire(v);
  own.template encode<typename Codec::dither_type>(
    v, key_of(args), 1.0f, own.part_of(args.parts.gathered, args.rank));
}

//! @brief Writes what the codes of this rank's shard lost to its residual.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void keep_published(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  chunk_in_lanes<true, InRows, Codec, Element, Context> own{ctx, args};
  find_published(own);
  if (all_idle(ctx, own.mine)) { return; }
  std::uint32_t const* const part = own.part_of(args.parts.gathered, args.rank);
  float v[32]                     = {};
  own.add(part, 1.0f, v);
  own.rotate_back(v);
  multiply_by_scales<true, InRows>(ctx, args, in_values(own), v);
  float given[32];
  load_published<InRows>(own, given);
  own.mine.active  = own.mine.active && is_finite(own.scale_in(part));
  auto* const kept = args.residual + own.mine.offset;
  context_arithmetic<Context> const math{};
  float const weight       = weight_of_kept(args);
  std::uint32_t const draw = draw_of_kept(args, own.mine.chunk, args.rank);
  bool const at_once       = moves_in_eights<Codec::chunk_size>(kept, own.mine.length);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    float before[8];
    load_either_way<true, InRows>(ctx, own.mine, kept, at_once, r, before);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      int const i       = 8 * r + j;
      float const lost  = Context::subtract(given[i], v[i]);
      float const other = weighed<Codec>(math, weight, before[j]);
      v[i]              = args.codec.feedback.after(math, given[i], lost, other);
    }
  }
  round_to_kept<residual_element<Codec>>(own.mine, draw, v);
  if constexpr (InRows) {
    store_coordinates<true>(ctx, args.residual, own.mine, v);
  } else if (at_once) {
    store_coordinates<false>(ctx, args.residual, own.mine, v);
  } else {
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      store_quarter<true>(ctx, own.mine, own.mine.active, v + 8 * r, kept, r);
    }
  }
}

}  // namespace tersum::inline v0::detail
