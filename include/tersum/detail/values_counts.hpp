// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans count under `publish`: pieces of tensors, and the ranks' parts.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/detail/shard_counts.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/state.hpp>

#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief A part for each rank, which holds its shard. Records are pieces of tensors: a boundary that cuts a tensor ends a
//! record and its last chunk, so that a chunk has one owner.
template <class Codec>
struct values_counts : shard_counts<Codec> {
  constexpr values_counts(Codec const& codec,
                          layout const& values,
                          world const& ranks,
                          std::span<std::uint64_t const> boundaries)
    : shard_counts<Codec>(codec, values, ranks, boundaries)
  {
    if (!check_world(ranks).ok() || !this->are_boundaries()) { return; }
    this->tensors_ = this->chunks_ = 0;
    for_each_record([this](tensor_record const& record) {
      ++this->tensors_;
      this->chunks_ += record.chunks;
    });
    for (int rank = 0; rank <= ranks.size; ++rank) {
      this->fingerprint_ = mix(this->fingerprint_, this->shard_begin(rank));
      if (rank < ranks.size) { words_ += part_words(rank); }
    }
    if (feeds_back<Codec>) {
      this->fingerprint_ = mix(this->fingerprint_, static_cast<std::uint64_t>(ranks.rank));
    }
    // Where all parts are of one size they lie one after the other, as an all-gather has them.
    stride_ = part_words(0);
    for (int rank = 1; rank < ranks.size; ++rank) {
      if (part_words(rank) != stride_) { stride_ = 0; }
    }
  }

  //! Pieces of tensors, none of which lies in two shards.
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    this->for_each_cut_record(visit);
  }

  //! @name Parts
  //! Which words of the payload each rank's shard takes. They ask every tensor of the layout.
  //! @{

  //! Of rank `world.size` where all parts end.
  [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
  {
    auto const r = static_cast<std::uint64_t>(rank);
    if (stride_ != 0) { return r * stride_; }
    // A bound of the chunks before: each piece has at most one more than whole chunks of its size.
    std::uint64_t compressed = 0, pieces = r;
    std::uint64_t const begin = this->shard_begin(rank);
    shard_counts<Codec>::for_each_record([&](tensor_record const& record) {
      if (record.chunks == 0 || record.offset >= begin) { return; }
      compressed += minimum(record.size, begin - record.offset);
      ++pieces;
    });
    std::uint64_t const chunks = chunks_in(compressed + (Codec::chunk_size - 1) * pieces);
    return round_up(chunks * (chunk_words() + 1) + 3 * r, 4);
  }
  [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
  {
    std::uint64_t const chunks = chunks_of(rank);
    return round_up(chunks, 4) + chunks * chunk_words();
  }
  //! Chunks of this rank's shard.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return chunks_of(this->rank());
  }
  //! The coordinates before a rank's shard that bypass the codec.
  [[nodiscard]] constexpr std::uint64_t bypass_begin(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t bypassed    = 0;
    shard_counts<Codec>::for_each_record([&](tensor_record const& record) {
      if (record.chunks != 0 || record.offset >= begin) { return; }
      bypassed += minimum(record.size, begin - record.offset);
    });
    return bypassed;
  }
  //! The ranks' parts of what bypasses, as `gather_wire_of` asks for them.
  struct bypass_parts {
    values_counts counts;

    [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
    {
      return counts.bypass_begin(rank);
    }
    [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
    {
      return counts.bypass_begin(rank + 1) - counts.bypass_begin(rank);
    }
  };
  //! Calls visit(shard_record) for the ranks in order, as the state holds them.
  template <class Visitor>
  constexpr void for_each_shard(Visitor visit) const
  {
    std::uint32_t first = 0;
    for (int rank = 0; rank < this->world_.size; ++rank) {
      auto const chunks = static_cast<std::uint32_t>(chunks_of(rank));
      visit(shard_record{part_word(rank), first, chunks});
      first += chunks;
    }
  }
  //! Bytes of all parts.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return words_ * sizeof(std::uint32_t);
  }
  //! Words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    return code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  //! What feedback keeps: one for each coordinate of the shard.
  [[nodiscard]] constexpr std::uint64_t residuals() const noexcept
  {
    return feeds_back<Codec> ? this->shard_size() : 0;
  }
  //! @}

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    bool const made = check_world(this->world_).ok();
    return section_list{
      holds<std::uint32_t>(section::gathered, made ? part_word(this->world_.size) : 0),
      in_place_of(section::gathered, section::payload),
      holds<float>(section::bypass, this->bypassed()),
      // What differs from rank to rank comes last, so that the rest lies at the same place on all.
      holds<float>(section::held, made && codes_differences<Codec> ? this->shard_size() : 0, 16)};
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    bool const made = check_world(this->world_).ok();
    return section_list{holds<state_header>(section::header, 1),
                        holds<tensor_record>(section::records, this->tensors()),
                        holds<shard_record>(section::shards, this->ranks_of()),
                        holds<chunk_entry>(section::table, this->chunks()),
                        this->section_of_scales(),
                        holds<float>(section::gain, gains_of<Codec>),
                        holds<residual_element<Codec>>(section::residual, made ? residuals() : 0)};
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t chunks_in(std::uint64_t size) noexcept
  {
    return size / Codec::chunk_size + (size % Codec::chunk_size != 0 ? 1 : 0);
  }
  [[nodiscard]] constexpr std::uint64_t chunks_of(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t const end   = this->shard_begin(rank + 1);
    std::uint64_t chunks      = 0;
    shard_counts<Codec>::for_each_record([&](tensor_record const& record) {
      std::uint64_t const first = maximum(record.offset, begin);
      std::uint64_t const last  = minimum(record.offset + record.size, end);
      if (record.chunks != 0 && first < last) { chunks += chunks_in(last - first); }
    });
    return chunks;
  }

  std::uint64_t words_  = 0;
  std::uint64_t stride_ = 0;  // words of every part, if all have as many
};

}  // namespace tersum::inline v0::detail
