// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose payload is not summed by the transport: the owner of each part decodes, adds, and encodes once more.

#pragma once

#include <tersum/chunk/norm_log.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/codebook_codec.hpp>
#include <tersum/detail/two_shot_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/ways.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief Chunks are rotated and rounded to a codebook; each rank owns a part of them, whose mean it computes.
//!
//! Use it if the transport can move bytes, and above all with many ranks. It has these rounds: the sum of norms, if the
//! chunker asks for them; an all-to-all, in which rank r gets all ranks' codes of part r, adds them in float in the
//! order of the ranks, and encodes the mean; an all-gather of the parts. The owner decodes its own *encoded* part like
//! all others do, so all ranks end with the same bits. The traffic is that of a ring all-reduce of the payload. The
//! error is that of two encodings, whatever the number of ranks.
//!
//! Every rank's chunk has a scale of its own, which travels with its codes. With a codebook all ranks rotate a chunk by
//! the same signs, so the owner adds and encodes without rotating. That has less error than another basis for the
//! second encoding, but the second encoding sees sums of few levels: with two ranks, or with 2 bits and less, it weighs
//! the ranks a little unevenly, although each encoding by itself is unbiased.
//!
//! With `ways` the codes of the mean have another width than those that the owners are sent. The traffic is then that of a ring
//! all-reduce of the mean of both.
//!
//! Feedback keeps what a rank's own codes lost; under `fixed_chunks`, where the owner of a chunk does not change, the
//! owner also keeps what its second encoding lost, if the feedback adds what was lost as it is (`adds_lost`); `kept_by_ranks` and
//! `kept_by_owners` leave out one of the two.
//! @tparam Chunker    `fixed_chunks<C>` or `allocated_chunks<C, Widths...>` of up to 16 bits, C from 256.
//! @tparam Rotator    `partial_hadamard<C>` for a codebook, `no_rotation` for blocks and casts.
//! @tparam Quantizer  `lloyd_max<q>`, `cast<T>` or a quantizer of blocks; under `allocated_chunks` any width of it. Under
//!                    `fixed_chunks` also `ways<Up, Down>`.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
//! @tparam Metric     `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <chunker Chunker,
          rotator Rotator,
          class Quantizer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
requires(part_quantizer<Quantizer> || detail::are_ways<Quantizer>) struct two_shot_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = typename detail::ways_of<Quantizer>::up;
  //! In whose codes owners send the mean.
  using mean_quantizer_type = typename detail::ways_of<Quantizer>::down;
  using feedback_type       = Feedback;
  using metric_type         = Metric;
  using agreement_kind      = agreement::norms_if<Chunker>;
  using payload_kind        = payload::parts;
  using dither_type         = typename detail::dither_of<quantizer_type>::type;
  using norm_scalar         = bfloat16;
  using agreed_op           = norm_sum<norm_scalar>;
  using rotation            = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;
  using counts_type         = detail::two_shot_counts<two_shot_codec>;

  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all       = false;
  static constexpr int chunk_size         = Chunker::chunk_size;

  //! The order of an exchange.
  using stages =
    join_stages<stage::open,
                stage::gather_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::measure, rounds::agree>,
                rounds::sum_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::select, stage::derive_steps>,
                stage::encode,
                rounds::scatter_parts,
                stage::recompress,
                rounds::gather_parts,
                stage::return_bypass,
                stage::decode,
                stage::finish>;

  static_assert(detail::suits_codebook_codec<Chunker, Rotator, quantizer_type>());
  static_assert(detail::suits_codebook_codec<Chunker, Rotator, mean_quantizer_type>());
  static_assert(detail::suits_ways<Chunker, quantizer_type, mean_quantizer_type>());
  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());

  Chunker chunker{};
  Rotator rotator{};
  Quantizer quantizer{};
  Feedback feedback{};
  Metric metric{};

  //! Two shots of another chunker and quantizer.
  template <class OtherChunker, class OtherQuantizer>
  using with_codes = two_shot_codec<OtherChunker, Rotator, OtherQuantizer, Feedback, Metric>;

  //! @brief How chunks on a level are encoded, level 1 being the narrowest width.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return detail::codec_on_level<Level>(*this);
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<two_shot_codec> plan(layout const& gradient,
                                                            world const& ranks) const
  {
    return tersum::plan<two_shot_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0
