// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What sharded codecs do besides encoding, and values codecs besides decoding: kernel bodies.

#pragma once

#include <tersum/block/block_values.hpp>
#include <tersum/exchange/detail/block_cast.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_metric.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_parts.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/part_stages.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

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

//! @brief `add_chunk_of_shard` of the chunks of this rank's shard: reads a part from each rank.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void add_shard(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  chunk_in_lanes<true, InRows, Codec, Element, Context> own{ctx, args};
  own.find_owned();
  if (all_idle(ctx, own.mine)) { return; }
  own.locate();
  add_chunk_of_shard(own);
}

//! @brief Copies what all ranks hold of this rank's shard, a thread a coordinate.
template <class Codec, class Element, class Context>
TERSUM_BODY void recall_shard(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const at =
    static_cast<std::uint64_t>(ctx.block_rank()) * ctx.block_threads() + ctx.thread_rank();
  if (at >= args.parts.end - args.parts.begin) { return; }
  ctx.store(args.parts.held + at, Context::value(ctx.load(args.gradient + args.parts.begin + at)));
}

//! @brief Copies what bypasses of this rank's shard to the wire when `Encode`, else that of all shards back. A block a piece.
template <bool Encode, publishing Codec, class Element, class Context>
TERSUM_BODY void bypass_tensors(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  tensor_record const& record = args.records[ctx.block_rank()];
  if (record.chunks != 0) { return; }
  if (Encode && (record.offset < args.parts.begin || record.offset >= args.parts.end)) { return; }
  Element* const values  = args.gradient + (record.offset - (Encode ? args.parts.begin : 0));
  float* const published = args.bypass + record.bypass;
  for (std::uint64_t i = ctx.thread_rank(); i < record.size; i += ctx.block_threads()) {
    if constexpr (Encode) {
      ctx.store(published + i, Context::value(ctx.load(values + i)));
    } else {
      float const value = ctx.load(published + i);
      flag_non_finite(args, value);
      ctx.store(values + i, Context::template element<Element>(value));
    }
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
    load_either_way<true, InRows>(own.ctx, own.mine, from, at_once, r, v + 8 * r, other, join);
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
