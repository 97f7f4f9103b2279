// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a sharded codec does besides encoding: kernel bodies.

#pragma once

#include <tersum/block/block_load.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_metric.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_parts.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/shard_map.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Some records of a plan, passed by value so that no host memory has to outlive the call.
struct shard_batch {
  static constexpr int capacity = 32;
  shard_record records[capacity];
  std::uint32_t first;  //!< The rank of the first one.
  std::uint32_t count;
};

//! @brief Writes the records of some ranks to the state.
template <class Codec, class Element, class Context>
TERSUM_BODY void initialize_shards(Context const& ctx,
                                   exchange_args<Codec, Element> const& args,
                                   shard_batch const& batch)
{
  std::uint32_t const i = ctx.thread_rank();
  if (i < batch.count) { args.parts.records[batch.first + i] = batch.records[i]; }
}

//! @brief Copies the chunk that a part shares with parts before it, from the part of its first rank, where it was encoded.
//! One block a part.
template <class Codec, class Element, class Context>
TERSUM_BODY void share_cut_chunk(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  auto const map           = make_part_map(args);
  std::uint32_t const part = ctx.block_rank();
  if (map.chunks_of(part) == 0) { return; }
  part_place const here = map.of_index(part, 0);
  part_place const from = map.of_slot(1, static_cast<std::uint32_t>(map.chunk_of(part, 0)));
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

//! @brief Writes those coordinates of a chunk that lie in this rank's shard to the shard. All threads of the warp call it.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_in_shard(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                own_chunk<Codec> const& mine,
                                float const (&v)[32])
{
  auto const begin     = static_cast<std::int64_t>(mine.offset - args.parts.begin);
  Element* const chunk = args.gradient + begin;
  int const before     = begin < 0 ? static_cast<int>(-begin) : 0;
  // What there is of the chunk up to the end of the shard.
  own_chunk<Codec> in_shard = mine;
  std::uint64_t const left  = args.parts.end - mine.offset;
  if (left < static_cast<std::uint64_t>(mine.length)) { in_shard.length = static_cast<int>(left); }
  bool const at_once =
    !mine.active || (before == 0 && moves_in_eights<Codec::chunk_size>(chunk, in_shard.length));
  if (ctx.warp_max(at_once ? 0u : 1u) == 0) {
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      store_quarter<false>(ctx, mine, mine.active, v + 8 * r, chunk, r);
    }
    return;
  }
  edge_rows<Codec> const rows{in_shard};
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    rows.store(ctx, r, v + 8 * r, [&](unsigned at, float value) {
      if (static_cast<int>(at) >= before - r * rows.quarter) {
        ctx.store(chunk + at + r * rows.quarter, Context::template finite_element<Element>(value));
      }
    });
  }
}

//! @brief Decodes what all ranks sent of this rank's part, adds it up, and writes the mean to the shard: reads a part from
//! each rank. Sets the flag of the exchange if a chunk of the part is not finite.
template <bool InRows = false, class Codec, class Element, class Context>
TERSUM_BODY void add_shard(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  chunk_in_lanes<true, InRows, Codec, Element, Context> own{ctx, args};
  own.find_owned();
  if (all_idle(ctx, own.mine)) { return; }
  if (own.mine.active) {
    chunk_entry const& entry = args.table[own.mine.chunk];
    own.mine.offset          = entry.offset;
    own.mine.length          = static_cast<int>(entry.length);
  }
  float const share = Context::divide(1.0f, static_cast<float>(args.world));
  float v[32];
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = 0.0f; }
  bool finite = true;
  for (std::uint32_t rank = 0; rank < own.map.world; ++rank) {
    std::uint32_t const* const part = args.parts.received + own.map.received(rank, args.rank);
    own.add(part, share, v);
    if (own.mine.active) { finite = finite && is_finite(own.scale_in(part)); }
  }
  own.rotate_back(v);
  multiply_by_scales<true, InRows>(ctx, args, own.mine, v);
  if (own.mine.active && !finite && own.mine.thread == 0) { raise_flag(args); }
  store_in_shard(ctx, args, own.mine, v);
}

}  // namespace tersum::inline v0::detail
