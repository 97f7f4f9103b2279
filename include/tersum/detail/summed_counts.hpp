// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan counts of codes that a reduce-scatter adds.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/code_counts.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/detail/shard_counts.hpp>
#include <tersum/layout.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/state.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief A part for each rank, which holds its shard; parts lie one after the other. Records are pieces of tensors: a boundary
//! that cuts a tensor ends a record and its last chunk.
template <class Codec>
struct summed_counts : shard_counts<Codec, code_counts<Codec>> {
  using base = shard_counts<Codec, code_counts<Codec>>;

  constexpr summed_counts(Codec const& codec,
                          layout const& gradient,
                          world const& ranks,
                          std::span<std::uint64_t const> boundaries)
    : base(codec, gradient, ranks, boundaries)
  {
    if (!check_world(ranks).ok() || !this->are_boundaries()) { return; }
    this->tensors_ = this->chunks_ = 0;
    for_each_record([this](tensor_record const& record) {
      ++this->tensors_;
      this->chunks_ += record.chunks;
    });
    for (int rank = 0; rank <= ranks.size; ++rank) {
      this->fingerprint_ = mix(this->fingerprint_, this->shard_begin(rank));
    }
  }

  //! Pieces of tensors, none of which lies in two shards.
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    this->for_each_cut_record(visit);
  }

  //! A scalar for each chunk, and one for each piece of a tensor whose head-room its owner tells the others.
  [[nodiscard]] constexpr std::uint64_t measured_scalars() const noexcept
  {
    return base::measured_scalars() + (tells_ratios<Codec> ? this->tensors() : 0);
  }

  //! @name Parts
  //! Which chunks and words of the payload each rank's shard takes. They ask every tensor of the layout.
  //! @{

  //! The first chunk of a rank's shard; of rank `world.size` the number of all chunks.
  [[nodiscard]] constexpr std::uint64_t first_chunk(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t chunks      = 0;
    for_each_record([&](tensor_record const& record) {
      if (record.offset < begin) { chunks += record.chunks; }
    });
    return chunks;
  }
  [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
  {
    return first_chunk(rank) * chunk_words();
  }
  [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
  {
    return part_word(rank + 1) - part_word(rank);
  }
  //! Chunks of this rank's shard.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return first_chunk(this->rank() + 1) - first_chunk(this->rank());
  }
  //! Words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    return Codec::chunk_size / 32 * Codec::reducer_type::lane_bits;
  }
  //! @}

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    bool const made = check_world(this->world_).ok() && this->are_boundaries();
    return base::workspace_sections().then(
      holds<std::uint32_t>(section::received, made ? part_words(this->rank()) : 0, 16));
  }
};

}  // namespace tersum::inline v0::detail
