// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The form of `reduce_scatter_mean`: every rank ends with the mean of its own shard.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/form/detail/shard_bounds.hpp>
#include <tersum/form/detail/suits_coder.hpp>
#include <tersum/form/form.hpp>
#include <tersum/layout.hpp>
#include <tersum/stages.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

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
    std::uint64_t end = 0;  // of the chunks before
    for_each_shard([&](shard_record const& record) {
      rests_ = rests_ || record.chunks % 4 != 0;
      cuts_  = cuts_ || (record.chunks > 0 && record.first < end);
      end    = maximum(end, std::uint64_t{record.first} + record.chunks);
    });
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
  //! Whether parts have zeros between scales and codes, and whether a boundary cuts a chunk.
  [[nodiscard]] constexpr bool has_rests() const noexcept { return rests_; }
  [[nodiscard]] constexpr bool cuts_chunks() const noexcept { return cuts_; }
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

  bool rests_ = false, cuts_ = false;
};

}  // namespace tersum::inline v0::detail

namespace tersum::inline v0 {

//! @brief Each rank gets its own shard of all ranks' codes. For `reduce_scatter_mean`; half of an all-reduce's bytes travel.
//!
//! `scaled_codes` and casts are decoded and added in float, in the order of the ranks, and not encoded again: the error is
//! that of one encoding, averaged as the gradients are. The chunks are those of `two_shot`: shards may begin and end
//! anywhere. A chunk that a boundary cuts is sent to all ranks that have some of it; each decodes it and keeps its own.
//!
//! `summed_codes` are added in the wire, by a reduce-scatter: each rank gets the sum of its own shard's codes. Chunks begin anew at every
//! boundary of shards, as if it cut the tensor. So the codes of a shard lie in one piece, no chunk is sent twice, and a shard is to the bit
//! what `in_wire` gives of it with a layout whose tensors are cut there. A tracked head-room is measured by the rank whose shard a piece of
//! a tensor lies in; that rank tells the others in the next exchange, in a scalar for each piece beside the norms.
//!
//! It takes `fixed_chunks`. Feedback keeps what a rank's own codes lost, of all shards. The metric is `plain_metric` or
//! `given_diagonal`, whose scales every rank has of all shards.
struct shard : usual_form {
  static constexpr bool in_shards = true;
  constexpr description describe() const { return {"shard"}; }

  template <class Coder>
  using rounds_of = std::conditional_t<adding_coder<Coder>,
                                       stage_list<rounds::sum_shards>,
                                       stage_list<rounds::scatter_shards>>;
  template <class Coder>
  using payload_kind = std::conditional_t<adding_coder<Coder>, payload::summed, payload::shards>;
  template <class Codec, class Coder>
  using counts = std::
    conditional_t<adding_coder<Coder>, detail::summed_shards<Codec>, detail::scaled_shards<Codec>>;

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    TERSUM_NEEDS(
      "tersum: shard takes fixed chunks: how many bits a shard gets, and where they lie, must not depend on the gradient",
      !selecting_chunker<Chunker>);
    TERSUM_NEEDS(
      "tersum: under shard a rank decodes its own shard only, so that no rank could keep all scales: use given_diagonal",
      !has_update<Metric>);
    if constexpr (adding_coder<Coder>) {
      using range = typename Coder::range_type;
      TERSUM_NEEDS(
        "tersum: the rotator is one of whole tensors, which shards cut: use one of chunks",
        Rotator::rotation_size != 0);
      TERSUM_NEEDS(
        "tersum: shard takes reducers that need no more than the sum, such as saturating_sum",
        std::is_same_v<detail::stages_after<typename Coder::reducer_type>, stage_list<>>);
      TERSUM_NEEDS(
        "tersum: under shard ranks tell each other a tracked head-room beside norms of chunks: use rms_range, or fixed_headroom",
        !range::headroom_type::tracked || detail::measures<range, statistic::chunk_square_norm>);
      return detail::suits_summed_codes<Ask, Chunker, Rotator, Coder, Feedback, Metric>();
    } else {
      return detail::suits_own_scales<Ask, Chunker, Rotator, Coder>();
    }
  }
};
static_assert(form<shard>);

}  // namespace tersum::inline v0
