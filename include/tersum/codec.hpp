// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codec whose payload your all-reduce adds: policies composed. It knows no executor and no transport.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/code_counts.hpp>
#include <tersum/detail/policy_stages.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/detail/coding.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/packed_codes.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_segments.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <type_traits>
#include <utility>

namespace tersum::inline v0 {

namespace detail {

//! The type of a codec's payload reduction: the reducer's operation, or, where chunks have different widths, one that
//! knows where the words of each width lie.
template <class Chunker, class Reducer>
struct payload_op_of {
  using type = typename Reducer::op;
};

template <class Chunker, class Reducer>
requires(
  selecting_chunker<Chunker>&& Chunker::several_bits) struct payload_op_of<Chunker, Reducer> {
  template <int... Level>
  static saturating_segments<Chunker::widths[Level]...> widths(
    std::integer_sequence<int, Level...>);
  using type = decltype(widths(std::make_integer_sequence<int, Chunker::level_count>{}));
};

}  // namespace detail

//! @brief A codec whose codes your all-reduce adds: it cuts the gradient into chunks, rotates them, agrees on a range,
//! quantizes and packs.
//!
//! It is a value: parameters of its policies that are known at run time are data members, such as `range.clip`. An exchange has two
//! rounds, the agreed scalars and the packed codes, and a third for the coordinates that bypass the codec, if any.
//! @tparam Chunker    `fixed_chunks<C>`, `top_chunks<C>`, `allocated_chunks<C, Widths...>` or `random_chunks<C>`.
//! @tparam Rotator    `partial_hadamard<C>`, `tensor_core_hadamard<C>` or `no_rotation`.
//! @tparam Range      `rms_range`, `absmax_range` or `global_range`.
//! @tparam Quantizer  `stochastic_quantizer<q>`, `nearest_quantizer<q>`, `lookup_quantizer<Table>`, or one of your own.
//! @tparam Reducer    `saturating_sum<b>`, `widening_sum<q, b>` or `guard_lanes<b>`.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
//! @tparam Metric     `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <chunker Chunker,
          rotator Rotator,
          quantization_range Range,
          quantizer Quantizer,
          reducer Reducer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using range_type     = Range;
  using quantizer_type = Quantizer;
  using reducer_type   = Reducer;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using dither_type    = typename Quantizer::dither;
  using payload_op     = typename detail::payload_op_of<Chunker, Reducer>::type;
  using norm_scalar    = typename Range::scalar;
  using agreed_op      = typename Range::op;
  using counts_type    = detail::code_counts<codec>;
  using lanes          = packed_codes<Reducer::lane_bits>;
  using agreement_kind = agreement::steps;
  using payload_kind   = payload::codes;
  using rotation       = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;

  //! Chunks are rotated in registers; by the rotator's plain form; not, because their tensor was.
  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all       = Rotator::rotation_size == 0;
  static constexpr int chunk_size         = Chunker::chunk_size;

  //! The order of an exchange.
  using stages = join_stages<stage::open,
                             stage::gather_bypass,
                             detail::stages_before<Rotator>,
                             stage::measure,
                             rounds::agree,
                             rounds::sum_bypass,
                             stages_if<selecting_chunker<Chunker>, stage::select>,
                             stage::derive_steps,
                             stage::encode,
                             rounds::reduce_payload,
                             stage::return_bypass,
                             detail::stages_after_sum<Reducer>,
                             stage::decode,
                             detail::stages_after<Rotator>,
                             stage::finish>;

  //! The wire word whose codes are all zero. A chunk that has no step, because it has no energy, sends such words.
  static constexpr std::uint32_t zero_word = detail::zero_word_of<Quantizer, Reducer>;

  static_assert(Rotator::rotation_size <= 1 || Rotator::rotation_size == chunk_size,
                "tersum: partial_hadamard<N> rotates whole chunks: make N equal to the chunk size");
  static_assert(detail::suits_lanes<Quantizer, Reducer>());
  static_assert(
    !Range::headroom_type::tracked || (Reducer::saturating && Reducer::lane_bits <= 8),
    "tersum: tracked_correlation is for saturating lanes of up to 8 bits; exact sums need only no_headroom");
  static_assert(
    !detail::has_several_bits<Chunker>() || !detail::has_widths_of<Chunker, Reducer>() ||
      std::is_same_v<typename Reducer::op, saturating_add<Reducer::lane_bits>>,
    "tersum: codes of allocated_chunks are added in saturating lanes: use saturating_sum");
  static_assert(
    [] {
      if constexpr (detail::has_several_bits<Chunker>()) {
        return Chunker::widths[Chunker::level_count - 1] <= 8;
      }
      return true;
    }(),
    "tersum: lanes of several widths have 2, 4 or 8 bits");
  static_assert(gradient_element<norm_scalar> && !std::is_same_v<norm_scalar, half> &&
                  std::is_same_v<typename agreed_op::element, norm_scalar>,
                "tersum: a range's scalar is float or bfloat16, and the element of its op");
  static_assert(
    !has_measurement<Range> || !std::is_same_v<agreed_op, detail::wrong_op<Range>>,
    "tersum: the ranks sum the norms of chunks (native_sum), and take the maximum of magnitudes and of "
    "norms of tensors (native_max)");
  static_assert(!rotates_all || !Feedback::enabled,
                "tersum: a rotator of whole tensors has no feedback: use partial_hadamard");
  static_assert(
    chunk_size >= 128 && chunk_size <= 32768 && (chunk_size & (chunk_size - 1)) == 0,
    "tersum: chunk_size must be a power of two from 128 to 32768; cast_codec takes smaller ones");
  static_assert(
    !selecting_chunker<Chunker> || !rotates_all,
    "tersum: a rotator of whole tensors rotates all chunks, and none is chosen: use partial_hadamard");
  static_assert(!rotates_all || has_measurement<Range>,
                "tersum: a rotator of whole tensors takes ranges of the library");
  static_assert(!rotates_all || !Metric::scaled,
                "tersum: a rotator of whole tensors takes plain_metric: use partial_hadamard");
  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());
  static_assert(detail::suits_choice<Chunker, Range>());

  Chunker chunker{};
  Rotator rotator{};
  Range range{};
  Quantizer quantizer{};
  Reducer reducer{};
  Feedback feedback{};
  Metric metric{};

  //! @brief The codec of the chunks on a level, level 1 being the narrowest width. It is this codec itself unless
  //! widths differ.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    if constexpr (several_bits<codec>) {
      constexpr int width = Chunker::widths[Level - 1];
      static_assert(
        has_with_bits<Quantizer, width> && has_with_bits<Reducer, width>,
        "tersum: allocated_chunks needs a quantizer and a reducer with with_bits: stochastic_quantizer, saturating_sum");
      Range fitting = range;
      fitting.clip  = 0;  // the best clip for these lanes
      return codec<fixed_chunks<chunk_size>,
                   Rotator,
                   Range,
                   typename Quantizer::template with_bits<width>,
                   typename Reducer::template with_bits<width>,
                   Feedback>{.range = fitting};
    } else {
      return *this;
    }
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<codec> plan(layout const& gradient, world const& ranks) const
  {
    return tersum::plan<codec>{*this, gradient, ranks};
  }
};

namespace detail {

//! @brief Calls body(codec), with the codec of the level that a chunk is on. The level is 1 or above.
TERSUM_EXEC_CHECK_DISABLE
template <int Level = 1, class Codec, class Body>
TERSUM_INLINE void at_level(Codec const& codec, std::uint32_t level, Body const& body)
{
  if constexpr (several_bits<Codec>) {
    if constexpr (Level < Codec::chunker_type::level_count) {
      if (level > Level) { return at_level<Level + 1>(codec, level, body); }
    }
  }
  body(codec.template at_level<Level>());
}

}  // namespace detail

}  // namespace tersum::inline v0

#include <tersum/cast_codec.hpp>
