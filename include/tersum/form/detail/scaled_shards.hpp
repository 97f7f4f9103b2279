// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan counts of codes with scales of their own, which each rank gets of its own shard.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/form/detail/shard_bounds.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>

#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief What kernels of scaled shards are given besides. From `stage::decode` on, `gradient` is the rank's shard.
struct shard_args {
  std::uint32_t* received;
  shard_record* records;  // one a rank
  std::uint64_t begin;    // coordinates of this rank's shard
  std::uint64_t end;
};

//! @brief Parts of unlike sizes, one for each rank: what is sent, and what is received of the own part.
template <class Codec>
struct scaled_shards : recorded_parts<Codec, shard_bounds> {
  using parts_type = shard_args;

  constexpr scaled_shards(Codec const& codec,
                          layout const& gradient,
                          world const& ranks,
                          std::span<std::uint64_t const> boundaries)
    : recorded_parts<Codec, shard_bounds>(codec, gradient, ranks, boundaries)
  {
    if (!this->is_made()) { return; }
    this->count_words();
  }

  //! @name Parts
  //! Which chunks each rank is sent, and which words they take. They ask every tensor of the layout.
  //! @{

  //! As the state holds it; of rank `world.size` where all parts end.
  [[nodiscard]] constexpr shard_record shard(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t const end   = rank < this->world_.size ? this->shard_begin(rank + 1) : begin;
    // Those that ended before have no coordinate in it; an empty shard begins where it ends.
    std::uint64_t const first  = chunks_before(begin, begin >= end);
    std::uint64_t const chunks = chunks_before(end, true) - first;
    auto const r               = static_cast<std::uint64_t>(rank);
    // Before a part lie at most as many chunks as before its first one, and one more for each rank, that were cut.
    std::uint64_t const word = round_up((first + r) * (this->chunk_words() + 1), 4) + 4 * r;
    return {word, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(chunks)};
  }
  [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
  {
    return shard(rank).word;
  }
  [[nodiscard]] constexpr std::uint64_t chunks_of(int rank) const noexcept
  {
    return shard(rank).chunks;
  }
  //! Calls visit(shard_record) for the ranks in order, as the state holds them.
  template <class Visitor>
  constexpr void for_each_shard(Visitor visit) const
  {
    for (int rank = 0; rank < this->world_.size; ++rank) { visit(shard(rank)); }
  }
  //! @}

  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    args.payload = work.take<std::uint32_t>("payload", this->all_words());
  }
  constexpr void take_received(section_list& work, auto& args) const noexcept
  {
    std::uint64_t const words = this->ranks_of() * this->part_words(this->rank());
    args.parts.received =
      work.take<std::uint32_t>("received", check_world(this->world_).ok() ? words : 0);
  }

 private:
  //! Chunks that have begun before a coordinate, or that have ended before it.
  [[nodiscard]] constexpr std::uint64_t chunks_before(std::uint64_t coordinate,
                                                      bool begun) const noexcept
  {
    std::uint64_t chunks = 0;
    this->for_each_record([&](tensor_record const& record) {
      if (record.chunks == 0 || coordinate <= record.offset) { return; }
      std::uint64_t const inside   = coordinate - record.offset;
      constexpr std::uint64_t size = Codec::chunk_size;
      chunks += inside >= record.size ? record.chunks : (inside + (begun ? size - 1 : 0)) / size;
    });
    return chunks;
  }
};

}  // namespace tersum::inline v0::detail
