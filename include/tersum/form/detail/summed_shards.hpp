// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan counts of codes that a reduce-scatter adds.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/form/detail/shard_bounds.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What kernels of summed shards are given besides.
struct summed_args {
  std::uint32_t* received;  // the sum of this rank's part
  std::uint64_t begin;      // coordinates of this rank's shard
  std::uint64_t end;
  std::uint64_t first;   // its first chunk
  std::uint64_t chunks;  // and how many it has
};

//! @brief A part for each rank, which holds its shard; parts lie one after the other.
template <class Codec>
struct summed_shards : cut_shards<Codec> {
  using cut_shards<Codec>::cut_shards;
  using parts_type = summed_args;

  //! @name Parts
  //! Which words of the payload each rank's shard takes. They ask every tensor of the layout.
  //! @{

  //! The first chunk of a rank's shard; of rank `world.size` the number of all chunks.
  [[nodiscard]] constexpr std::uint64_t first_chunk(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t chunks      = 0;
    this->for_each_record([&](tensor_record const& record) {
      if (record.offset < begin) { chunks += record.chunks; }
    });
    return chunks;
  }
  //! Chunks of this rank's shard.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return first_chunk(this->rank() + 1) - first_chunk(this->rank());
  }
  [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
  {
    return first_chunk(rank) * chunk_words();
  }
  [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
  {
    return part_word(rank + 1) - part_word(rank);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return this->chunks() * chunk_words() * sizeof(std::uint32_t);
  }
  //! Words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    return Codec::chunk_size / 32 * Codec::reducer_type::lane_bits;
  }
  //! @}

  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    args.payload      = work.take_bytes<std::uint32_t>("payload", payload_bytes());
    args.parts.first  = first_chunk(this->rank());
    args.parts.chunks = owned_chunks();
    this->bound(args.parts);
  }
  constexpr void take_received(section_list& work, auto& args) const noexcept
  {
    std::uint64_t const words = this->is_made() ? part_words(this->rank()) : 0;
    args.parts.received       = work.take<std::uint32_t>("received", words);
  }
};

}  // namespace tersum::inline v0::detail
