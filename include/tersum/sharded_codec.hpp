// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codec of `reduce_scatter_mean`: every rank ends with the mean of its own shard, after one encoding.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/norm_log.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/codebook_codec.hpp>
#include <tersum/detail/shard_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/stages.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <span>

namespace tersum::inline v0 {

namespace detail {

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

}  // namespace detail

//! @brief Chunks are rotated and rounded to a codebook; each rank decodes and adds up those of its own shard. For
//! `reduce_scatter_mean`.
//!
//! It has these rounds: the sum of what bypasses the codec, which all ranks get; an all-to-all, in which rank r gets all
//! ranks' codes of its shard. The mean is added in float, in the order of the ranks, and not encoded again. So the error is
//! that of one encoding, averaged as the gradients are. Bytes travel once: half of what two shots send.
//!
//! The chunks are those of `two_shot_codec`: shards may begin and end anywhere. A chunk that a boundary cuts is sent to all
//! ranks that have a coordinate of it, each of which decodes all of it and keeps what is its own.
//!
//! Feedback keeps what a rank's own codes lost, of all shards.
//! @tparam Chunker    `fixed_chunks<C>`, C from 256.
//! @tparam Rotator    `partial_hadamard<C>` for a codebook, `no_rotation` for blocks and casts.
//! @tparam Quantizer  `lloyd_max<q>`, `cast<T>` or a quantizer of blocks.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
//! @tparam Metric     `plain_metric` or `given_diagonal`, whose scales every rank has of all shards.
template <chunker Chunker,
          rotator Rotator,
          part_quantizer Quantizer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct sharded_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = Quantizer;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::shards;
  using dither_type    = typename detail::dither_of<Quantizer>::type;
  using norm_scalar    = bfloat16;
  using agreed_op      = norm_sum<norm_scalar>;
  using rotation       = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;
  using counts_type    = detail::sharded_counts<sharded_codec>;

  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all       = false;
  static constexpr int chunk_size         = Chunker::chunk_size;

  //! The order of an exchange. What comes after the rounds writes to the shard.
  using stages = stage_list<stage::open,
                            stage::gather_bypass,
                            rounds::sum_bypass,
                            stage::encode,
                            rounds::scatter_shards,
                            stage::return_bypass,
                            stage::decode,
                            stage::finish>;

  static_assert(
    !selecting_chunker<Chunker>,
    "tersum: sharded_codec takes fixed_chunks: how many bits a shard gets must not depend "
    "on the gradient");
  static_assert(detail::suits_codebook_codec<Chunker, Rotator, Quantizer>());
  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());
  static_assert(
    !has_update<Metric>,
    "tersum: a rank of a sharded_codec decodes its own shard only, so that no rank could "
    "keep all scales: use given_diagonal");

  Chunker chunker{};
  Rotator rotator{};
  Quantizer quantizer{};
  Feedback feedback{};
  Metric metric{};

  //! @brief How chunks on a level are encoded: there is one level.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return detail::codec_on_level<Level>(*this);
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  //! @param gradient    What all ranks have a gradient of.
  //! @param ranks       The ranks, and which of them this is.
  //! @param boundaries  world.size + 1 ascending coordinates, the first 0 and the last layout.coordinates, the same on every
  //!                    rank: rank r's shard begins at number r and ends at number r + 1. Equal numbers make empty shards.
  //!                    They are the caller's and must live as long as the plan. Without boundaries the shards are
  //!                    `rank_blocks`: equal parts, where the ranks divide the coordinates.
  [[nodiscard]] constexpr tersum::plan<sharded_codec> plan(
    layout const& gradient,
    world const& ranks,
    std::span<std::uint64_t const> boundaries = {}) const
  {
    return tersum::plan<sharded_codec>{*this, gradient, ranks, boundaries};
  }
};

}  // namespace tersum::inline v0
