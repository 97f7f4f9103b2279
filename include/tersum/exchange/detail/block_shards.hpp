// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a sharded codec does besides encoding: kernel bodies.

#pragma once

#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_parts.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/part_stages.hpp>
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

//! @brief `add_chunk_of_shard` of the chunks of this rank's shard: reads a part from each rank.
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
  add_chunk_of_shard(own);
}

}  // namespace tersum::inline v0::detail
