// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codec of `all_gather_values`: every rank encodes its own shard, and all ranks decode all shards.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/norm_log.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/codebook_codec.hpp>
#include <tersum/detail/values_counts.hpp>
#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Each rank's shard is cut into chunks, which are rotated and rounded to a codebook; all ranks gather and decode them.
//! For `all_gather_values`.
//!
//! It has these rounds: an all-gather of what bypasses the codec, in float, and one of the codes. Every rank decodes every
//! shard, its own too, so all ranks end with the same bits.
//!
//! Chunks begin where a tensor or a shard begins. The codes of a chunk are those of `two_shot_codec`.
//!
//! With `error_feedback` the owner of a shard adds what its codes lost to the next values. With `difference_feedback` codes
//! are of the difference to what all ranks hold. In a metric both are divided by scales, which all ranks have of all coordinates;
//! those that the library keeps follow what was decoded: values, or differences.
//! @tparam Chunker    `fixed_chunks<C>`, C from 256.
//! @tparam Rotator    `partial_hadamard<C>` for a codebook, `no_rotation` for blocks and casts.
//! @tparam Quantizer  `lloyd_max<q>`, `cast<T>` or a quantizer of blocks.
//! @tparam Feedback   `no_feedback`, `error_feedback` or `difference_feedback`.
//! @tparam Metric     `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <chunker Chunker,
          rotator Rotator,
          part_quantizer Quantizer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct values_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = Quantizer;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::published;
  using dither_type    = typename detail::dither_of<Quantizer>::type;
  using norm_scalar    = bfloat16;
  using agreed_op      = norm_sum<norm_scalar>;
  using rotation       = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;
  using counts_type    = detail::values_counts<values_codec>;

  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all       = false;
  static constexpr int chunk_size         = Chunker::chunk_size;

  //! The order of an exchange. `gather_bypass` and `encode` read the shard, all other stages the values of all ranks.
  using stages = join_stages<stage::open,
                             stages_if<detail::of_differences<Feedback>, stage::recall>,
                             stage::gather_bypass,
                             stage::encode,
                             rounds::publish_bypass,
                             rounds::publish_parts,
                             stage::return_bypass,
                             stage::decode,
                             stage::finish>;

  static_assert(
    !selecting_chunker<Chunker>,
    "tersum: values_codec takes fixed_chunks: how many bits a shard gets must not depend on the values");
  static_assert(detail::suits_codebook_codec<Chunker, Rotator, Quantizer>());
  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());

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
  //! @param values      What all ranks get.
  //! @param ranks       The ranks, and which of them this is.
  //! @param boundaries  Where the ranks' shards begin and end, as of `sharded_codec::plan`.
  [[nodiscard]] constexpr tersum::plan<values_codec> plan(
    layout const& values, world const& ranks, std::span<std::uint64_t const> boundaries = {}) const
  {
    return tersum::plan<values_codec>{*this, values, ranks, boundaries};
  }
};

}  // namespace tersum::inline v0
