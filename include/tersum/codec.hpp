// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies composed: the one codec of chunks. It knows no executor and no transport.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/coder/detail/coder_counts.hpp>
#include <tersum/coder/scaled_codes.hpp>
#include <tersum/coder/summed_codes.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/form/form.hpp>
#include <tersum/form/in_wire.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/reduce/saturating_segments.hpp>
#include <tersum/refusal.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/stages.hpp>

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace tersum::inline v0 {

namespace detail {

//! @brief The scalar that the ranks agree on, how it is reduced, and whether each chunk and each tensor has one: the norm by which a
//! chunker chooses.
template <class Chunker, class Coder, class Form>
struct agreed_of {
  using kind   = std::conditional_t<chooses_by_norm<Chunker>(), agreement::norms, agreement::none>;
  using scalar = typename Form::template norm_scalar<Chunker>;
  using op     = native_sum<scalar>;

  static constexpr bool of_chunks = chooses_by_norm<Chunker>(), of_tensors = false;
};

//! The same of codes that are added: what the range measures, and for a tracked head-room norms of tensors besides.
template <class Chunker, adding_coder Coder, class Form>
struct agreed_of<Chunker, Coder, Form> {
  using kind   = agreement::steps;
  using scalar = typename Coder::range_type::scalar;
  using op     = typename Coder::range_type::op;

  using range                     = typename Coder::range_type;
  static constexpr bool of_chunks = !measures<range, statistic::tensor_square_norm>;
  static constexpr bool of_tensors =
    !of_chunks || (range::headroom_type::tracked && !measures<range, statistic::chunk_square_norm>);
};

//! @brief The type of a codec's payload reduction: none; of elements; the reducer's operation, or, where chunks have different
//! widths, one that knows where the words of each width lie.
template <class Chunker, class Coder>
struct payload_op_of {
  using type = void;
};

template <class Chunker, conversion Coder>
struct payload_op_of<Chunker, Coder> {
  using type = native_sum<typename Coder::element>;
};

template <class Chunker, adding_coder Coder>
struct payload_op_of<Chunker, Coder> {
  using type = typename Coder::reducer_type::op;
};

template <class Chunker, adding_coder Coder>
requires(selecting_chunker<Chunker>&& Chunker::several_bits) struct payload_op_of<Chunker, Coder> {
  template <int... Level>
  static saturating_segments<Chunker::widths[Level]...> widths(
    std::integer_sequence<int, Level...>);
  using type = decltype(widths(std::make_integer_sequence<int, Chunker::level_count>{}));
};

}  // namespace detail

//! @brief Policies composed: a chunker cuts the gradient, a rotator turns each chunk, a coder makes bits of it, and a form says who
//! adds them, in which rounds.
//!
//! It is a value: parameters of its policies that are known at run time are data members, such as `coder.range.clip`. What does
//! not go together does not compile, with a sentence that names who asks for what.
//! @tparam Chunker    `fixed_chunks<C>`, `top_chunks<C>`, `allocated_chunks<C, Widths...>` or `random_chunks<C>`.
//! @tparam Rotator    `partial_hadamard<C>` or `no_rotation`.
//! @tparam Coder      `summed_codes<Range, Quantizer, Reducer>`, `scaled_codes<Quantizer>` or `cast<T>`.
//! @tparam Form       `in_wire`, `two_shot`, `gather`, `shard` or `publish`.
//! @tparam Feedback   `no_feedback`, `error_feedback` or another one of feedback/.
//! @tparam Metric     `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <chunker Chunker,
          rotator Rotator,
          coder Coder,
          form Form,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct codec {
  using chunker_type        = Chunker;
  using rotator_type        = Rotator;
  using coder_type          = Coder;
  using form_type           = Form;
  using feedback_type       = Feedback;
  using metric_type         = Metric;
  using range_type          = typename detail::parts_of_coder<Coder>::range_type;
  using reducer_type        = typename detail::parts_of_coder<Coder>::reducer_type;
  using lanes               = typename detail::parts_of_coder<Coder>::lanes;
  using quantizer_type      = typename Coder::quantizer_type;
  using mean_quantizer_type = typename Form::template mean_coder<Coder>::quantizer_type;
  using dither_type         = typename detail::dither_of<quantizer_type>::type;
  using payload_op          = typename detail::payload_op_of<Chunker, Coder>::type;
  using payload_kind        = typename Form::template payload_kind<Coder>;
  using agreed_type         = detail::agreed_of<Chunker, Coder, Form>;
  using agreement_kind      = typename agreed_type::kind;
  using norm_scalar         = typename agreed_type::scalar;
  using agreed_op           = typename agreed_type::op;
  using counts_type         = typename Form::template counts<codec, Coder>;
  //! How kernels rotate chunks. Elements that are added are chunks without a rotation in a metric, and no chunks otherwise.
  using rotation = typename std::conditional_t<!std::is_same_v<payload_kind, payload::values> ||
                                                 (Metric::scaled && Chunker::chunk_size >= 128 &&
                                                  Chunker::chunk_size <= 1024),
                                               detail::rotation_of<Rotator, Chunker::chunk_size>,
                                               std::type_identity<void>>::type;
  constexpr description describe() const
  {
    return {"codec", chunker, rotator, coder, Form{}, feedback, metric};
  }

  //! Chunks are rotated in registers; by the rotator's plain form; not, because their tensor was.
  static constexpr bool rotates_chunks     = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory  = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all        = Rotator::rotation_size == 0;
  static constexpr int chunk_size          = Chunker::chunk_size;
  static constexpr std::uint32_t zero_word = detail::parts_of_coder<Coder>::zero_word;

  //! The order of an exchange.
  using stages = join_stages<stage::open,
                             stages_if<detail::of_differences<Feedback>, stage::recall>,
                             stage::gather_bypass,
                             detail::stages_before<Rotator>,
                             stages_if<agrees<codec>, stage::measure, rounds::agree>,
                             typename Form::first_round,
                             stages_if<selecting_chunker<Chunker>, stage::select>,
                             stages_if<agrees<codec>, stage::derive_steps>,
                             stage::encode,
                             typename Form::template rounds_of<Coder>,
                             stage::return_bypass,
                             detail::stages_after<reducer_type>,
                             stage::decode,
                             detail::stages_after<Rotator>,
                             stage::finish>;

  static_assert(detail::refuses<false, Chunker, Rotator, Coder, Form, Feedback, Metric>().empty());

  Chunker chunker{};
  Rotator rotator{};
  Feedback feedback{};
  Metric metric{};
  Coder coder{};  // last: what is empty before it takes the room that would align it

  //! @brief The codec of the chunks on a level, of which 1 is the narrowest: this codec itself unless widths differ.
  //! @{
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr codec at_level() const noexcept
  {
    return *this;
  }
  template <int Level>
  requires several_bits<codec>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    auto const narrow = coder.template with_bits<Chunker::widths[Level - 1]>();
    return tersum::codec<fixed_chunks<chunk_size>,
                         Rotator,
                         std::remove_const_t<decltype(narrow)>,
                         Form,
                         Feedback,
                         Metric>{.coder = narrow};
  }
  //! @}

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<codec> plan(layout const& gradient, world const& ranks) const
    requires(!Form::in_shards)
  {
    return tersum::plan<codec>{*this, gradient, ranks};
  }

  //! @brief The same under forms in shards.
  //! @param gradient    What all ranks have a gradient of; under `publish` what all ranks get.
  //! @param ranks       The ranks, and which of them this is.
  //! @param boundaries  world.size + 1 ascending coordinates, the first 0 and the last layout.coordinates, the same on every
  //!                    rank: rank r's shard begins at number r and ends at number r + 1. Equal numbers make empty shards.
  //!                    They are the caller's and must live as long as the plan. Without boundaries the shards are
  //!                    `rank_blocks`: equal parts, where the ranks divide the coordinates.
  [[nodiscard]] constexpr tersum::plan<codec> plan(
    layout const& gradient,
    world const& ranks,
    std::span<std::uint64_t const> boundaries = {}) const requires(Form::in_shards)
  {
    return tersum::plan<codec>{*this, gradient, ranks, boundaries};
  }
};

namespace detail {

//! Coordinates as floats, all of them: what bypasses a codec.
using floats_in_wire = codec<fixed_chunks<1024>, no_rotation, cast<float>, in_wire>;

}  // namespace detail

}  // namespace tersum::inline v0
