// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan counts of the codes of shards, which their ranks decode and add.

#pragma once

#include <tersum/detail/shard_counts.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/state.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief Parts of unlike sizes, one for each rank: what is sent, and what is received of the own part.
template <class Codec>
struct sharded_counts : shard_counts<Codec> {
  constexpr sharded_counts(Codec const& codec,
                           layout const& gradient,
                           world const& ranks,
                           std::span<std::uint64_t const> boundaries)
    : shard_counts<Codec>(codec, gradient, ranks, boundaries)
  {
    if (!check_world(ranks).ok() || !this->are_boundaries()) { return; }
    for (int rank = 0; rank <= ranks.size; ++rank) {
      this->fingerprint_ = mix(this->fingerprint_, this->shard_begin(rank));
      if (rank < ranks.size) { words_ += part_words(rank); }
    }
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
    std::uint64_t const first =
      begin < end ? chunks_before(begin, false) : chunks_before(begin, true);
    std::uint64_t const chunks = chunks_before(end, true) - first;
    auto const r               = static_cast<std::uint64_t>(rank);
    // Before a part lie at most as many chunks as before its first one, and one more for each rank, that were cut.
    std::uint64_t const word = round_up((first + r) * (chunk_words() + 1), 4) + 4 * r;
    return {word, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(chunks)};
  }
  [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
  {
    return shard(rank).word;
  }
  [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
  {
    std::uint64_t const chunks = shard(rank).chunks;
    return round_up(chunks, 4) + chunks * chunk_words();
  }
  //! Chunks of this rank's part.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return shard(this->rank()).chunks;
  }
  //! Calls visit(shard_record) for the ranks in order, as the state holds them.
  template <class Visitor>
  constexpr void for_each_shard(Visitor visit) const
  {
    for (int rank = 0; rank < this->world_.size; ++rank) { visit(shard(rank)); }
  }
  //! Bytes of all parts, that to the rank itself included: what a rank gives to the collective.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return words_ * sizeof(std::uint32_t);
  }
  //! Words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    return code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  //! @}

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    std::uint64_t const ranks = check_world(this->world_).ok() ? this->ranks_of() : 0;
    return section_list{
      holds<std::uint32_t>(section::payload, ranks > 0 ? part_word(this->world_.size) : 0),
      holds<float>(section::bypass, this->bypassed()),
      // What differs from rank to rank comes last, so that the rest lies at the same place on all.
      holds<std::uint32_t>(
        section::received, ranks > 0 ? ranks * part_words(this->rank()) : 0, 16)};
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    return section_list{holds<state_header>(section::header, 1),
                        holds<tensor_record>(section::records, this->tensors()),
                        holds<shard_record>(section::shards, this->ranks_of()),
                        holds<chunk_entry>(section::table, this->chunks()),
                        this->section_of_scales(),
                        holds<float>(section::gain, gains_of<Codec>),
                        holds<residual_element<Codec>>(section::residual, this->residuals())};
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

  std::uint64_t words_ = 0;
};

}  // namespace tersum::inline v0::detail
