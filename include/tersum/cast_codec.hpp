// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that convert instead of quantizing: the baseline, and TopKC.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/norm_log.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/chunk_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/stages.hpp>

#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! The scalar that the ranks of a cast agree on: the chunker's, or float where the chunker has none and nothing is agreed.
template <class Chunker>
struct norm_scalar_of {
  using type = float;
};

template <class Chunker>
requires requires { typename Chunker::scalar; }
struct norm_scalar_of<Chunker> {
  using type = typename Chunker::scalar;
};

//! @brief How kernels share out the chunks of a cast in a metric: as chunks that are not rotated.
template <class Metric, int Size>
struct cast_rotation {
  using type = void;
};

template <class Metric, int Size>
requires(Metric::scaled&& Size >= 128 && Size <= 1024) struct cast_rotation<Metric, Size> {
  using type = typename rotation_of<no_rotation, Size>::type;
};

//! @brief True, or a sentence of the compiler that says what casts do not go with a metric.
template <class Chunker, class Metric, class Scalar>
[[nodiscard]] constexpr bool suits_scaled_casts() noexcept
{
  static_assert(!Metric::scaled || selecting_chunker<Chunker>,
                "tersum: a cast of all coordinates takes plain_metric: the error of a float is in "
                "units of the coordinate already");
  static_assert(!Metric::scaled || Chunker::chunk_size >= 128,
                "tersum: a cast in a metric takes chunks of 128 to 1024 coordinates");
  static_assert(!has_update<Metric> || !std::is_same_v<Scalar, norm_log>,
                "tersum: a metric that is kept takes norms in float or bfloat16: first scales are "
                "of norms");
  return true;
}

//! @brief Converted coordinates: all of them, and those that bypass before them; or the chunks that travel.
template <class Codec>
struct cast_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;
  using element = typename Codec::quantizer_type::element;

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    if constexpr (selects<Codec>) { return this->capacity_words() * sizeof(std::uint32_t); }
    return this->compressed() * sizeof(element);
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const bypass  = holds<float>(section::bypass, this->bypassed());
    auto const payload = holds<element>(
      section::payload, payload_bytes() / sizeof(element), selects<Codec> ? 16 : alignof(element));
    if constexpr (selects<Codec>) {
      return section_list{holds<selection_scratch>(section::selection, 1),
                          holds<std::uint32_t>(section::places, this->places()),
                          payload,
                          bypass,
                          holds<std::byte>(section::agreed, this->agreed_room())};
    } else {
      return section_list{bypass, payload};
    }
  }
};

}  // namespace detail

//! @brief A codec that only converts: its payload is a native sum of `T`.
//!
//! With `fixed_chunks` it converts all coordinates: the baseline, and what users have today. With `top_chunks` it is
//! TopKC, which has one round more, the sum of the chunks' norms.
//!
//! In a metric coordinates are divided by their scales first, norms are of the quotients, and these travel. So the chunks that are
//! chosen are large beside what they usually are, and halves hold them however small the coordinates are.
//! @tparam T         What travels: float, half or bfloat16.
//! @tparam Chunker   `fixed_chunks` for all coordinates, or a chunker that selects.
//! @tparam Feedback  `error_feedback` for chunkers that select.
//! @tparam Metric    `given_diagonal` or `kept_diagonal` for chunkers that select, with chunks of 128 to 1024.
template <gradient_element T,
          chunker Chunker   = fixed_chunks<1024>,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct cast_codec {
  using chunker_type   = Chunker;
  using quantizer_type = cast<T>;
  using payload_op     = native_sum<T>;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using agreement_kind = agreement::norms_if<Chunker>;
  using payload_kind   = payload::values;
  using counts_type    = detail::cast_counts<cast_codec>;
  using rotation       = typename detail::cast_rotation<Metric, Chunker::chunk_size>::type;

  static constexpr bool rotates_all = false;
  static constexpr int chunk_size =
    Chunker::chunk_size;  //!< With `fixed_chunks` it says only how kernels divide the work.

  using norm_scalar = typename detail::norm_scalar_of<Chunker>::type;
  using agreed_op   = norm_sum<norm_scalar>;

  //! The order of an exchange.
  using stages =
    join_stages<stage::open,
                stage::gather_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::measure, rounds::agree>,
                rounds::sum_bypass,
                stages_if<selecting_chunker<Chunker>, stage::select>,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::derive_steps>,
                stage::encode,
                rounds::reduce_payload,
                stage::return_bypass,
                stage::decode,
                stage::finish>;

  static_assert(!Feedback::enabled || selecting_chunker<Chunker>,
                "tersum: a cast of all coordinates loses next to nothing and has no feedback");
  static_assert(!detail::has_several_bits<Chunker>(),
                "tersum: a cast has one width: use top_chunks, or a codec with allocated_chunks");

  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());
  static_assert(detail::suits_scaled_casts<Chunker, Metric, norm_scalar>());

  Chunker chunker{};
  Feedback feedback{};
  Metric metric{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<cast_codec> plan(layout const& gradient,
                                                        world const& ranks) const
  {
    return tersum::plan<cast_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0
