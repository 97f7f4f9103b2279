// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What codecs ask of single policies before they are composed: which optional members a policy has, and whether two of them go
//! together. `codec_kinds.hpp` derives the kinds of codecs from it.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

//! @brief Within a function template that has `bool Ask` and returns a sentence: if the condition does not hold the function returns
//! this one, or, where it is not asked, does not compile and says it.
#define TERSUM_NEEDS(sentence, ...)                                                                \
  do {                                                                                             \
    if constexpr (!(__VA_ARGS__)) {                                                                \
      if constexpr (Ask) {                                                                         \
        return sentence;                                                                           \
      } else {                                                                                     \
        static_assert((__VA_ARGS__), sentence);                                                    \
      }                                                                                            \
    }                                                                                              \
  } while (false)

namespace tersum::inline v0 {

// clang-format off
template <class T> concept has_energy         = requires(T const r) {
  { r.energy(1.0f, 1.0f) } -> std::same_as<float>; };  //!< Optional: energy(agreed scalar, coordinates measured): what it says of the chunk's squared norm, or anything that grows with it. Chunks are chosen by it.

// clang-format on

}  // namespace tersum::inline v0

namespace tersum::inline v0::detail {

//! Whether a range has fused kernels measure this statistic.
template <class Range, statistic What>
concept measures = has_measurement<Range> && Range::measurement == What;

//! Whether ranks agree on the largest of what they measure, and not on the sum.
template <class Range>
inline constexpr bool takes_maxima = requires
{
  requires Range::op::maximum;
};

//! Whether a chunker gives chunks widths of their own.
template <class Chunker>
[[nodiscard]] constexpr bool has_several_bits() noexcept
{
  static_assert(
    selecting_chunker<Chunker> || !(has_budget<Chunker> || has_by_norm<Chunker>),
    "tersum: a chunker that chooses needs bits, by_norm, score, level_count and several_bits (then widths and weighting)");
  return requires { requires selecting_chunker<Chunker> && Chunker::several_bits; };
}

//! Whether a quantizer can be had in all widths that a chunker gives.
template <class Chunker, class Quantizer>
[[nodiscard]] constexpr bool has_widths_of() noexcept
{
  return !has_several_bits<Chunker>() || requires
  {
    requires has_with_bits<Quantizer, Chunker::widths[0]>;
  };
}

//! Whether a chunker needs the chunks' norms.
template <class Chunker>
[[nodiscard]] constexpr bool chooses_by_norm() noexcept
{
  return requires { requires selecting_chunker<Chunker> && Chunker::by_norm; };
}

//! Whether a feedback policy has codes be of differences.
template <class Feedback>
concept of_differences = Feedback::codes_differences;

//! In what a state keeps the scales of a metric.
template <class Metric>
struct scale_of {
  using type = float;
};
template <has_stored_scale Metric>
struct scale_of<Metric> {
  using type = typename Metric::stored_scale;
};

//! In what a state keeps what feedback keeps.
template <class Feedback>
struct residual_of_feedback {
  using type = float;
};
template <has_stored_residual Feedback>
struct residual_of_feedback<Feedback> {
  using type = typename Feedback::stored_residual;
  static_assert(std::is_same_v<type, float> || std::is_same_v<type, bfloat16>,
                "tersum: stored_residual of feedback must be float or bfloat16");
};

//! @brief Empty, or a sentence that says where a feedback policy does not go.
//! @tparam Owners     Whether ranks encode the mean of chunks that they own, the same in every step.
//! @tparam Published  Whether all ranks hold the values that they sent in the last exchange.
template <bool Ask, bool Owners, bool Published, class Feedback>
[[nodiscard]] constexpr std::string_view suits_feedback() noexcept
{
  TERSUM_NEEDS("tersum: kept_by_owners is for two_shot with fixed chunks",
               !has_owners_only<Feedback> || (Owners && has_adds_lost<Feedback>));
  TERSUM_NEEDS(
    "tersum: difference_feedback is for publish, whose ranks hold the values of the last exchange: gradients are added afresh in every step",
    !of_differences<Feedback> || Published);
  return {};
}

}  // namespace tersum::inline v0::detail
