// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of all codecs of shards count alike: where the ranks' shards begin and end.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/chunk_counts.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief What codecs derive their `counts_type` from if each rank has a shard.
//! @tparam Counts  What the codec counts besides.
template <class Codec, class Counts = chunk_counts<Codec>>
class shard_counts : public Counts {
 public:
  constexpr shard_counts(Codec const& codec,
                         layout const& gradient,
                         world const& ranks,
                         std::span<std::uint64_t const> boundaries)
    : Counts(codec, gradient, ranks), boundaries_(boundaries)
  {
    uneven_ = !boundaries.empty() && are_boundaries();
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = Counts::check(); !s.ok()) { return s; }
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
    auto const n = static_cast<std::uint64_t>(maximum(this->world_.size, 1));
    return this->coordinates() / n * r + this->coordinates() % n * r / n;
  }
  //! Coordinates of this rank's shard.
  [[nodiscard]] constexpr std::uint64_t shard_size() const noexcept
  {
    return shard_begin(rank() + 1) - shard_begin(rank());
  }
  //! @}

 protected:
  //! Records where boundaries cut tensors: pieces, none of which lies in two shards, and each of which begins a chunk.
  template <class Visitor>
  constexpr void for_each_cut_record(Visitor visit) const
  {
    constexpr std::uint64_t size = Codec::chunk_size;
    int rank                     = 0;
    std::uint64_t first_chunk    = 0;
    Counts::for_each_record([&](tensor_record const& whole) {
      tensor_record piece     = whole;
      std::uint64_t const end = whole.offset + whole.size;
      while (piece.offset < end) {
        while (rank + 1 < this->world_.size && shard_begin(rank + 1) <= piece.offset) { ++rank; }
        bool const is_last = rank + 1 >= this->world_.size;
        piece.size         = (is_last ? end : minimum(end, shard_begin(rank + 1))) - piece.offset;
        piece.first_chunk  = first_chunk;
        piece.chunks = whole.chunks == 0 ? 0 : piece.size / size + (piece.size % size != 0 ? 1 : 0);
        visit(static_cast<tensor_record const&>(piece));
        first_chunk += piece.chunks;
        piece.bypass += whole.chunks == 0 ? piece.size : 0;
        piece.offset += piece.size;
      }
    });
  }
  //! This rank, where it is not said the first one.
  [[nodiscard]] constexpr int rank() const noexcept { return maximum(this->world_.rank, 0); }
  [[nodiscard]] constexpr std::uint64_t ranks_of() const noexcept
  {
    return static_cast<std::uint64_t>(maximum(this->world_.size, 1));
  }
  [[nodiscard]] constexpr bool are_boundaries() const noexcept
  {
    if (boundaries_.empty()) { return true; }
    if (boundaries_.size() != ranks_of() + 1) { return false; }
    if (boundaries_.front() != 0 || boundaries_.back() != this->coordinates()) { return false; }
    return std::is_sorted(boundaries_.begin(), boundaries_.end());
  }

 private:
  std::span<std::uint64_t const> boundaries_;
  bool uneven_ = false;  // the boundaries are given, and are such
};

}  // namespace tersum::inline v0::detail
