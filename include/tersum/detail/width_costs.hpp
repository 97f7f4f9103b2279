// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What chunks of each width cost in words and leave as error, and which steps from one width to the next pay:
//! arithmetic of plans.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Codecs whose kernels take the chunks of the gradient by their widths, so that the threads of a warp do the same.
template <class Codec>
inline constexpr bool orders_chunks = several_bits<Codec> && (scattering<Codec> || copying<Codec>);

//! @brief The distortion of a level of a codec with several widths.
template <class Codec, int Level = 1>
[[nodiscard]] constexpr float level_distortion(int level, int world) noexcept
{
  if constexpr (Level < Codec::chunker_type::level_count) {
    if (level > Level) { return level_distortion<Codec, Level + 1>(level, world); }
  }
  constexpr int width = Codec::chunker_type::widths[Level - 1];
  if constexpr (has_parts<Codec>) {
    // Two shots encode twice: each rank its gradient, whose errors average as the gradients do, and the owner the mean.
    float const once = Codec::quantizer_type::template with_bits<width>::distortion();
    // Where all ranks add all codes there is one encoding.
    if (copying<Codec>) { return once; }
    return world > 1 ? 2.0f * once : once;
  } else {
    return Codec::reducer_type::template with_bits<width>::distortion(world);
  }
}

//! @brief Words of a chunk on a level of a codec with several widths, its scales included.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t level_words(int level) noexcept
{
  if (level == 0) { return 0; }
  auto const codes =
    static_cast<std::uint32_t>(Codec::chunk_size / 32 * Codec::chunker_type::widths[level - 1]);
  if constexpr (has_parts<Codec>) {
    constexpr int scales = scale_words<typename Codec::quantizer_type>(Codec::chunk_size) + 1;
    return codes + static_cast<std::uint32_t>(scales);
  }
  return codes;
}

//! @brief Words of the payload that a unit of a selection's cost stands for.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t selection_unit() noexcept
{
  if constexpr (has_parts<Codec>) {
    return 1;
  } else if constexpr (several_bits<Codec>) {
    return Codec::chunk_size / 16;  // two bits a coordinate
  } else if constexpr (casts<Codec>) {
    return Codec::chunk_size * sizeof(typename Codec::quantizer_type::element) / 4;
  } else {
    return Codec::chunk_size / 32 * Codec::reducer_type::lane_bits;
  }
}

//! @brief The steps from width to width of a codec with several widths, and the exponent of energies. Widths that are not on
//! the convex hull of the distortions are left out, since they never pay.
template <class Codec>
constexpr void rule_steps(selection_rule& rule,
                          typename Codec::chunker_type const& given,
                          int world) noexcept
{
  using chunker  = typename Codec::chunker_type;
  rule.exponent  = static_cast<std::uint32_t>(given.weighting * 65536.0f);
  rule.step_bits = 7;
  int level      = 0;
  float lost     = 1.0f;  // without bits
  while (level < chunker::level_count) {
    int best    = 0;
    float worth = 0;
    for (int next = level + 1; next <= chunker::level_count; ++next) {
      float const less  = lost - level_distortion<Codec>(next, world);
      auto const words  = static_cast<float>(level_words<Codec>(next) - level_words<Codec>(level));
      float const a_bit = less / (words * (32.0f / Codec::chunk_size));
      if (a_bit > worth) {
        worth = a_bit;
        best  = next;
      }
    }
    if (best == 0) { break; }
    rule.level[rule.steps] = static_cast<std::uint32_t>(best);
    rule.cost[rule.steps] =
      (level_words<Codec>(best) - level_words<Codec>(level)) / selection_unit<Codec>();
    rule.offset[rule.steps] =
      numbered_offset(key_bias + float_bits(worth) - float_bits(1.0f), rule.steps);
    lost = level_distortion<Codec>(best, world);
    ++rule.steps;
    level = best;
  }
  for (int l = 1; l <= chunker::level_count; ++l) {
    rule.words[l] = level_words<Codec>(l) - (has_parts<Codec> ? 1 : 0);
  }
}

}  // namespace tersum::inline v0::detail
