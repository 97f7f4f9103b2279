// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codec of `reduce_scatter_mean` whose payload a reduce-scatter adds: every rank receives the sum of its own shard's
//! codes, and decodes it.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/summed_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief `codec` for `reduce_scatter_mean`: codes are added in the wire, and each rank gets the sum of its own shard only.
//!
//! It has the rounds of `codec`, but for the last one, which is a reduce-scatter: half of an all-reduce's bytes travel.
//! Chunks begin anew at every boundary of shards, as if it cut the tensor. So the codes of a shard lie in one piece, no chunk
//! is sent twice, and a shard is to the bit what `codec` gives of it with a layout whose tensors are cut there.
//!
//! A tracked head-room is measured by the rank whose shard a piece of a tensor lies in; that rank tells the others in the
//! next exchange, in a scalar for each piece beside the norms.
//! @tparam Chunker    `fixed_chunks<C>`.
//! @tparam Rotator    `partial_hadamard<C>`, `tensor_core_hadamard<C>` or `no_rotation`.
//! @tparam Range      `rms_range`; without a tracked head-room also `absmax_range` or `global_range`.
//! @tparam Quantizer  As of `codec`, like the following.
//! @tparam Metric     `plain_metric` or `given_diagonal`, whose scales every rank has of all shards.
template <chunker Chunker,
          rotator Rotator,
          quantization_range Range,
          quantizer Quantizer,
          reducer Reducer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct summed_shards_codec {
  //! The same for `all_reduce_mean`.
  using whole_type     = codec<Chunker, Rotator, Range, Quantizer, Reducer, Feedback, Metric>;
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using range_type     = Range;
  using quantizer_type = Quantizer;
  using reducer_type   = Reducer;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using dither_type    = typename whole_type::dither_type;
  using payload_op     = typename whole_type::payload_op;
  using norm_scalar    = typename whole_type::norm_scalar;
  using agreed_op      = typename whole_type::agreed_op;
  using counts_type    = detail::summed_counts<summed_shards_codec>;
  using lanes          = typename whole_type::lanes;
  using agreement_kind = typename whole_type::agreement_kind;
  using payload_kind   = payload::summed;
  using rotation       = typename whole_type::rotation;

  static constexpr bool rotates_chunks     = whole_type::rotates_chunks;
  static constexpr bool rotates_in_memory  = whole_type::rotates_in_memory;
  static constexpr bool rotates_all        = false;
  static constexpr int chunk_size          = Chunker::chunk_size;
  static constexpr std::uint32_t zero_word = whole_type::zero_word;

  //! The order of an exchange. What comes after the rounds writes to the shard.
  using stages = join_stages<stage::open,
                             stage::gather_bypass,
                             stage::measure,
                             rounds::agree,
                             rounds::sum_bypass,
                             stage::derive_steps,
                             stage::encode,
                             rounds::sum_shards,
                             stage::return_bypass,
                             stage::decode,
                             stage::finish>;

  static_assert(
    !selecting_chunker<Chunker>,
    "tersum: summed_shards_codec takes fixed_chunks: where the codes of a shard lie must not "
    "depend on the gradient");
  static_assert(
    !whole_type::rotates_all,
    "tersum: the rotator is one of whole tensors, which shards cut: use partial_hadamard");
  static_assert(
    std::is_same_v<detail::stages_after_sum<Reducer>, stage_list<>>,
    "tersum: summed_shards_codec takes reducers that need no more than the sum: saturating_sum, "
    "widening_sum or guard_lanes");
  static_assert(
    !tracks<summed_shards_codec> || detail::measures<Range, statistic::chunk_square_norm>,
    "tersum: ranks of a summed_shards_codec tell each other a tracked head-room beside norms of "
    "chunks: use rms_range, or fixed_headroom");
  static_assert(
    !has_update<Metric>,
    "tersum: a rank of a summed_shards_codec decodes its own shard only, so that no rank could "
    "keep all scales: use given_diagonal");

  Chunker chunker{};
  Rotator rotator{};
  Range range{};
  Quantizer quantizer{};
  Reducer reducer{};
  Feedback feedback{};
  Metric metric{};

  //! @brief How chunks on a level are encoded: there is one level.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return *this;
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  //! @param gradient    What all ranks have a gradient of.
  //! @param ranks       The ranks, and which of them this is.
  //! @param boundaries  As of `sharded_codec::plan`.
  [[nodiscard]] constexpr tersum::plan<summed_shards_codec> plan(
    layout const& gradient,
    world const& ranks,
    std::span<std::uint64_t const> boundaries = {}) const
  {
    return tersum::plan<summed_shards_codec>{*this, gradient, ranks, boundaries};
  }
};

}  // namespace tersum::inline v0
