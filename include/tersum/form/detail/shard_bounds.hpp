// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The shard of each rank, where it begins and ends, and what a plan counts of codes that a reduce-scatter adds.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief What forms derive their counts from if each rank has a shard.
template <class Codec>
class shard_bounds : public codec_counts<Codec> {
 public:
  constexpr shard_bounds(Codec const& codec,
                         layout const& gradient,
                         world const& ranks,
                         std::span<std::uint64_t const> boundaries)
    : codec_counts<Codec>(codec, gradient, ranks), boundaries_(boundaries)
  {
    uneven_ = !boundaries.empty() && are_boundaries();
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = codec_counts<Codec>::check(); !s.ok()) { return s; }
    if (!are_boundaries()) {
      return {error_code::invalid_argument,
              "boundaries must be world.size + 1 ascending numbers from 0 to layout.coordinates"};
    }
    return {};
  }

  //! @name Shards
  //! Rank r's shard is the coordinates from shard_begin(r) to shard_begin(r + 1).
  //! @{
  [[nodiscard]] constexpr std::uint64_t shard_begin(int rank) const noexcept
  {
    auto const r = static_cast<std::uint64_t>(rank);
    if (uneven_) { return boundaries_[r]; }
    std::uint64_t const n = this->ranks_of();
    return this->coordinates() / n * r + this->coordinates() % n * r / n;
  }
  //! Calls visit(coordinate) for the begins of the shards, and the end of the last one.
  constexpr void for_each_boundary(auto const& visit) const
  {
    for (int rank = 0; rank <= this->world_.size; ++rank) { visit(shard_begin(rank)); }
  }
  //! Coordinates of this rank's shard.
  [[nodiscard]] constexpr std::uint64_t shard_size() const noexcept
  {
    return shard_begin(rank() + 1) - shard_begin(rank());
  }
  //! @}

 protected:
  //! Sets the ends of this rank's shard.
  constexpr void bound(auto& parts) const noexcept
  {
    parts.begin = shard_begin(rank());
    parts.end   = shard_begin(rank() + 1);
  }
  //! Whether world and boundaries are such that shards can be counted, which check() says.
  [[nodiscard]] constexpr bool is_made() const noexcept
  {
    return check_world(this->world_).ok() && are_boundaries();
  }
  //! This rank, where it is not said the first one.
  [[nodiscard]] constexpr int rank() const noexcept { return maximum(this->world_.rank, 0); }
  [[nodiscard]] constexpr bool are_boundaries() const noexcept
  {
    if (boundaries_.empty()) { return true; }
    if (boundaries_.size() != this->ranks_of() + 1) { return false; }
    if (boundaries_.front() != 0 || boundaries_.back() != this->coordinates()) { return false; }
    return std::is_sorted(boundaries_.begin(), boundaries_.end());
  }

 private:
  std::span<std::uint64_t const> boundaries_;
  bool uneven_ = false;  // the boundaries are given, and are such
};

//! @brief The same where boundaries cut tensors: records are pieces of tensors, so that a chunk has one owner.
template <class Codec>
class cut_shards : public shard_bounds<Codec> {
 public:
  constexpr cut_shards(Codec const& codec,
                       layout const& gradient,
                       world const& ranks,
                       std::span<std::uint64_t const> boundaries)
    : shard_bounds<Codec>(codec, gradient, ranks, boundaries)
  {
    if (this->is_made()) { this->count_records(*this); }
  }

  //! Pieces of tensors, none of which lies in two shards, and each of which begins a chunk.
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    constexpr std::uint64_t size = Codec::chunk_size;
    int rank                     = 0;
    std::uint64_t first_chunk    = 0;
    codec_counts<Codec>::for_each_record([&](tensor_record const& whole) {
      tensor_record piece     = whole;
      std::uint64_t const end = whole.offset + whole.size;
      while (piece.offset < end) {
        while (rank + 1 < this->world_.size && this->shard_begin(rank + 1) <= piece.offset) {
          ++rank;
        }
        bool const is_last = rank + 1 >= this->world_.size;
        piece.size = (is_last ? end : minimum(end, this->shard_begin(rank + 1))) - piece.offset;
        piece.first_chunk = first_chunk;
        piece.chunks      = whole.chunks == 0 ? 0 : divide_up(piece.size, size);
        visit(static_cast<tensor_record const&>(piece));
        first_chunk += piece.chunks;
        piece.bypass += whole.chunks == 0 ? piece.size : 0;
        piece.offset += piece.size;
      }
    });
  }
};

//! @brief What `Shards` count where parts hold codes with scales of their own, and the state a record of each part. The counts derived
//! from it have chunks_of(rank) and part_word(rank).
template <class Codec, template <class> class Shards>
class recorded_parts : public Shards<Codec> {
 public:
  using Shards<Codec>::Shards;

  //! Words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    return code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
  {
    std::uint64_t const chunks = self().chunks_of(rank);
    return round_up(chunks, 4) + chunks * chunk_words();
  }
  //! Chunks of this rank's part.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return self().chunks_of(this->rank());
  }
  //! Bytes of all parts, that of the rank itself included: what a rank gives to the collective.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return words_ * sizeof(std::uint32_t);
  }
  //! Words from the first part to the end of the last one.
  [[nodiscard]] constexpr std::uint64_t all_words() const noexcept
  {
    return check_world(this->world_).ok() ? self().part_word(this->world_.size) : 0;
  }
  constexpr void take_shards(section_list& state, auto& args) const noexcept
  {
    args.parts.records = state.take<shard_record>("shards", this->ranks_of());
    this->bound(args.parts);
  }

 protected:
  constexpr void count_words() noexcept
  {
    for (int rank = 0; rank < this->world_.size; ++rank) { words_ += part_words(rank); }
  }

 private:
  [[nodiscard]] constexpr auto const& self() const noexcept
  {
    return static_cast<typename Codec::counts_type const&>(*this);
  }

  std::uint64_t words_ = 0;
};

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
