// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What codecs ask of single policies before they are composed: which optional members a policy has, and whether two of them go
//! together. `codec_kinds.hpp` derives the kinds of codecs from it.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/types.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

// clang-format off
template <class T> concept has_energy         = requires(T const r) {
  { r.energy(1.0f, 1.0f) } -> std::same_as<float>; };  //!< Optional: energy(agreed scalar, coordinates measured): what it says of the chunk's squared norm, or anything that grows with it. Chunks are chosen by it.

// clang-format on

}  // namespace tersum::inline v0

namespace tersum::inline v0::detail {

//! Whether a range has fused kernels measure this statistic.
template <class Range, statistic What>
inline constexpr bool measures = false;

template <class Range, statistic What>
requires(has_measurement<Range>) inline constexpr bool measures<Range, What> = Range::measurement
                                                                               == What;

//! Whether a chunker gives chunks widths of their own.
template <class Chunker>
[[nodiscard]] constexpr bool has_several_bits() noexcept
{
  static_assert(
    selecting_chunker<Chunker> || !(has_budget<Chunker> || has_by_norm<Chunker>),
    "tersum: a chunker that chooses needs bits, by_norm, score, level_count and several_bits (then widths and weighting)");
  if constexpr (selecting_chunker<Chunker>) { return Chunker::several_bits; }
  return false;
}

//! Whether a quantizer can be had in all widths that a chunker gives.
template <class Chunker, class Quantizer>
[[nodiscard]] constexpr bool has_widths_of() noexcept
{
  if constexpr (has_several_bits<Chunker>()) {
    return has_with_bits<Quantizer, Chunker::widths[0]>;
  }
  return true;
}

//! Whether a chunker needs the chunks' norms.
template <class Chunker>
[[nodiscard]] constexpr bool chooses_by_norm() noexcept
{
  if constexpr (selecting_chunker<Chunker>) { return Chunker::by_norm; }
  return false;
}

//! @brief True, or a sentence of the compiler that says why chunks are not chosen under a range.
template <class Chunker, class Range>
[[nodiscard]] constexpr bool suits_choice() noexcept
{
  constexpr bool by_norms = measures<Range, statistic::chunk_square_norm>;
  if constexpr (selecting_chunker<Chunker> && !by_norms) {
    static_assert(
      !Chunker::by_norm || has_energy<Range>,
      "tersum: chunks are chosen by their norms: use rms_range, or give your range energy(agreed, coordinates)");
    static_assert(
      !has_several_bits<Chunker>() && !has_measurement<Range>,
      "tersum: chunks of several widths take rms_range, whose clip follows the width; absmax_range and global_range "
      "take fixed_chunks");
    static_assert(
      !Range::headroom_type::tracked,
      "tersum: where chunks are chosen, tracked_correlation compares their sums with their norms: use rms_range");
  }
  return true;
}

//! Whether a feedback policy has codes be of differences.
template <class Feedback>
inline constexpr bool of_differences = requires
{
  requires Feedback::codes_differences;
};

//! Whether a feedback policy keeps nothing of a coordinate that was sent, so that the codec must leave some out.
template <class Feedback>
inline constexpr bool clears_sent = requires
{
  requires Feedback::clears_sent;
};

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

//! @brief True, or a sentence of the compiler that says what a metric does not go with.
template <class Chunker, class Feedback, class Metric>
[[nodiscard]] constexpr bool suits_metric() noexcept
{
  static_assert(!Metric::scaled || Chunker::chunk_size <= 1024,
                "tersum: a metric with scales takes chunks of up to 1024 coordinates");
  using scale = typename scale_of<Metric>::type;
  static_assert(std::is_same_v<scale, float> || std::is_same_v<scale, bfloat16>,
                "tersum: stored_scale of a metric must be float or bfloat16");
  return true;
}

//! @brief True, or a sentence of the compiler that says which metric does not go with low-rank factors.
template <class Metric>
[[nodiscard]] constexpr bool suits_matrices() noexcept
{
  static_assert(std::is_same_v<typename scale_of<Metric>::type, float>,
                "tersum: a low_rank_codec keeps its scales in float: kept_diagonal_in is for "
                "codecs of chunks");
  return true;
}

}  // namespace tersum::inline v0::detail
