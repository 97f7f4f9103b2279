// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec for gradients with many zeros: codes of unlike lengths, in payloads of a size that the plan knows.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/norm_log.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/entropy_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/stages.hpp>

namespace tersum::inline v0 {

//! Codes of a rank have unlike lengths, and lie in streams.
template <class Codec>
concept entropy_coding = requires
{
  requires Codec::codes_in_streams;
};

//! @brief Every rank rounds its gradient to multiples of one step and sends the codes in as few bits as they need; all ranks
//! gather, decode and add them.
//!
//! Use it for gradients with many exact zeros, or where most coordinates are small beside a few. Zeros cost next to nothing,
//! and large coordinates get long codes. Each rank takes the finest step whose codes fit into its message, for as many chunks
//! as have room the next finer one, and fills the rest with zeros: the size of messages is fixed by the plan, and the ranks
//! need not agree on anything. It is the codec of `entropy_gather` without its adaptive coder: chunks are coded apart, in
//! Golomb codes (`rice_orders`), so that threads of a GPU can do it.
//!
//! It has one round, an all-gather. The mean is added in float, in the order of the ranks, by every rank alike, so all end with
//! the same bits. Rounding is to the nearest, but for a dead zone of .65 of a step around zero, and so is biased. Magnitudes
//! below 2^-126 are zero.
//!
//! Feedback keeps what a rank's own codes lost. In a metric steps are in its units, and so is what chunks compete for.
//! @tparam Feedback  `no_feedback` or `error_feedback`.
//! @tparam Size      Coordinates of a chunk: a power of two from 128 to 1024.
//! @tparam Metric    `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <feedback Feedback = no_feedback, int Size = 512, metric Metric = plain_metric>
struct entropy_codec {
  using chunker_type   = fixed_chunks<Size>;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::copies;
  using norm_scalar    = float;
  using agreed_op      = norm_sum<norm_scalar>;
  using counts_type    = detail::entropy_counts<entropy_codec>;
  using rotation       = typename detail::rotation_of<no_rotation, Size>::type;

  static constexpr bool codes_in_streams = true;
  static constexpr bool rotates_all      = false;
  static constexpr int chunk_size        = Size;

  //! The order of an exchange.
  using stages = join_stages<stage::open,
                             stage::gather_bypass,
                             rounds::sum_bypass,
                             stage::encode,
                             rounds::gather_parts,
                             stage::return_bypass,
                             stage::decode,
                             stage::finish>;

  static_assert(Size <= 1024, "tersum: entropy_codec takes chunks of up to 1024 coordinates");
  static_assert(!has_one_step<Feedback> && !has_owners_only<Feedback>,
                "tersum: entropy_codec takes feedback that ranks keep from step to step");
  static_assert(detail::suits_metric<chunker_type, Feedback, Metric>());

  //! Bits per coordinate, above 0 and at most 64, of a ring all-reduce with the traffic of this exchange, step and positions
  //! included: a message has `bits` * 2 / ranks for each coordinate.
  float bits = 2;
  Feedback feedback{};
  Metric metric{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<entropy_codec> plan(layout const& gradient,
                                                           world const& ranks) const
  {
    return tersum::plan<entropy_codec>{*this, gradient, ranks};
  }
};

//! @brief The same in two shots: chunks are dealt to the ranks like cards, each rank decodes and adds what all have sent of its
//! chunks, and encodes the mean with a step of its own.
//!
//! Use it among more ranks: messages have more bits than when all are gathered, but there are two encodings, and a mean has
//! fewer zeros than what it is made of. It has these rounds: an all-to-all and an all-gather. The owner decodes its own encoded
//! part like all others do. In a metric it adds and encodes in the units of that.
//!
//! Feedback keeps what a rank's own codes lost. Owners of chunks keep what the encoding of the mean lost, too, as those of
//! `two_shot_codec` do, if the feedback adds what was lost as it is (`adds_lost`); `kept_by_ranks` and `kept_by_owners` leave out
//! one of the two. In a metric it is `no_feedback` or `kept_by_ranks`.
//! @tparam Feedback  `no_feedback` or `error_feedback`.
//! @tparam Metric    As of `entropy_codec`.
template <feedback Feedback = no_feedback, int Size = 512, metric Metric = plain_metric>
struct entropy_two_shot_codec {
  using chunker_type   = fixed_chunks<Size>;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::parts;
  using norm_scalar    = float;
  using agreed_op      = norm_sum<norm_scalar>;
  using counts_type    = detail::entropy_counts<entropy_two_shot_codec>;
  using rotation       = typename detail::rotation_of<no_rotation, Size>::type;

  static constexpr bool codes_in_streams = true;
  static constexpr bool rotates_all      = false;
  static constexpr int chunk_size        = Size;

  //! The order of an exchange.
  using stages = join_stages<stage::open,
                             stage::gather_bypass,
                             rounds::sum_bypass,
                             stage::encode,
                             rounds::scatter_parts,
                             stage::recompress,
                             rounds::gather_parts,
                             stage::return_bypass,
                             stage::decode,
                             stage::finish>;

  static_assert(Size <= 1024, "tersum: entropy_codec takes chunks of up to 1024 coordinates");
  static_assert(!has_one_step<Feedback>,
                "tersum: entropy_two_shot_codec takes feedback that is kept from step to step");
  static_assert(detail::suits_metric<chunker_type, Feedback, Metric>());
  static_assert(
    !Metric::scaled || !Feedback::enabled || has_ranks_only<Feedback>,
    "tersum: in a metric entropy_two_shot_codec takes feedback that ranks keep: what an "
    "owner kept would be in units of the last step");

  //! Bits per coordinate of a ring all-reduce with the traffic of this exchange, above 0 and at most 64, step and positions
  //! included: what owners are sent and the mean have 2 `bits` together.
  float bits = 2;
  //! What owners are sent has `bits` * `up` for each coordinate, the mean has `bits` * (2 - `up`): below 2. A mean has fewer zeros
  //! than what it is made of, and errors of one rank count less than those of the mean. 0 is for .9 with two ranks and .8 with
  //! more. Where nearly all coordinates are zeros .7 is better for eight ranks and .6 for sixteen, without zeros 1 is.
  float up = 0;
  Feedback feedback{};
  Metric metric{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<entropy_two_shot_codec> plan(layout const& gradient,
                                                                    world const& ranks) const
  {
    return tersum::plan<entropy_two_shot_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0
