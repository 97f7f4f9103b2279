// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a sharded codec does besides encoding: kernel bodies.

#pragma once

#include <tersum/exchange/detail/block_parts.hpp>
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

//! @brief Writes those coordinates of a chunk that lie in this rank's shard to the shard.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_in_shard(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                own_chunk<Codec> const& mine,
                                float const (&v)[32])
{
  std::uint64_t const end = mine.offset + static_cast<std::uint64_t>(mine.length);
  if (mine.offset >= args.parts.begin && end <= args.parts.end) {
    own_chunk<Codec> in_shard = mine;
    in_shard.offset           = mine.offset - args.parts.begin;
    store_chunk(ctx, in_shard, v, args.gradient);
    return;
  }
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    std::uint64_t const at = mine.offset + static_cast<std::uint64_t>(mine.coordinate(i));
    if (at < end && at >= args.parts.begin && at < args.parts.end) {
      ctx.store(args.gradient + (at - args.parts.begin),
                Context::template finite_element<Element>(v[i]));
    }
  }
}

//! @brief Decodes what all ranks sent of this rank's part, adds it up, and writes the mean to the shard: reads a part from
//! each rank. Sets the flag of the exchange if a chunk of the part is not finite.
template <class Codec, class Element, class Context>
TERSUM_BODY void add_shard(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  own_part<Codec, Element, Context> own{ctx, args};
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
  multiply_by_scales<true>(ctx, args, own.mine, v);
  if (!own.mine.active) { return; }
  if (!finite && own.mine.thread == 0) { raise_flag(args); }
  store_in_shard(ctx, args, own.mine, v);
}

}  // namespace tersum::inline v0::detail
