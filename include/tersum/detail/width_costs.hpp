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

//! @brief The budget pays for codes of one width up and of another down: `ways` under `allocated_chunks`.
template <class Codec>
inline constexpr bool allots_both_ways = []() {
  if constexpr (scattering<Codec> && several_bits<Codec>) { return ways_differ<Codec>; }
  return false;
}();

//! @brief The codes in which owners send the mean of chunks on a level, level 1 being the narrowest width. Where widths differ the mean
//! has as many bits more than what ranks send on every level.
template <class Codec, int Level>
struct mean_level {
  using type = typename Codec::mean_quantizer_type;
};

template <class Codec, int Level>
requires(allots_both_ways<Codec>) struct mean_level<Codec, Level> {
  using widest               = typename Codec::mean_quantizer_type;
  static constexpr int wider = widest::bits - Codec::quantizer_type::bits;
  using type = typename widest::template with_bits<Codec::chunker_type::widths[Level - 1] + wider>;
};

//! @brief Whether energies may count in units of their tensor's, if the chunker's member says so.
template <class Codec>
inline constexpr bool may_choose_by_tensor = []() {
  if constexpr (several_bits<Codec>) { return has_by_tensor<typename Codec::chunker_type>; }
  return false;
}();

//! @brief Whether a chunk may count for how much the ranks agreed on it, which its only scale tells.
template <class Chunker, class Quantizer>
inline constexpr bool tells_agreement = has_by_agreement<Chunker>&& table_codebook<Quantizer>;
template <class Codec>
inline constexpr bool may_choose_by_agreement = []() {
  if constexpr (several_bits<Codec> && scattering<Codec>) {
    return tells_agreement<typename Codec::chunker_type, typename Codec::quantizer_type>;
  }
  return false;
}();

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
  if constexpr (allots_both_ways<Codec>) {
    // What ranks encode counts rho times, the mean energy of their gradients over n times that of their mean. It is 1 / n where
    // they are equal, 1 where they are independent, above that where they oppose each other; 3 / n is between the first two for
    // all numbers that matter.
    double const up   = Codec::quantizer_type::template with_bits<width>::distortion();
    double const down = mean_level<Codec, Level>::type::distortion();
    return static_cast<float>(world > 3 ? up * 3.0 / world + down : up + down);
  } else if constexpr (has_parts<Codec>) {
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

//! @brief The same of the mean, where the budget pays for other codes on the way down.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t mean_level_words(int level) noexcept
{
  if (level == 0) { return 0; }
  constexpr int wider = mean_level<Codec, 1>::wider;
  return level_words<Codec>(level) + static_cast<std::uint32_t>(Codec::chunk_size / 32 * wider);
}

//! @brief Words of a chunk on a level of both ways, or of one where they do not differ.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t paid_words(int level) noexcept
{
  if constexpr (allots_both_ways<Codec>) {
    return level_words<Codec>(level) + mean_level_words<Codec>(level);
  }
  return level_words<Codec>(level);
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

//! @brief The level that every chunk with energy reaches before any chunk gets more; 0 for none, or -1 if there is no such width.
template <class Chunker>
[[nodiscard]] constexpr int least_level(Chunker const& chunker) noexcept
{
  if constexpr (has_least_bits<Chunker>) {
    for (int level = 1; level <= Chunker::level_count; ++level) {
      if (Chunker::widths[level - 1] == chunker.least_bits) { return level; }
    }
    return chunker.least_bits == 0 ? 0 : -1;
  }
  return 0;
}

//! Added to the keys of the steps to a chunk's least width, so that they are above those of all other steps. Those are halved then, and
//! below it: an energy is at most half of 0x7f800000, an offset at most half of `key_bias`.
inline constexpr std::uint32_t least_offset = 0x50000000u;

//! @brief The steps from width to width of a codec with several widths, and the exponent of energies. Widths that are not on
//! the convex hull of the distortions are left out, since they never pay.
template <class Codec>
constexpr void rule_steps(selection_rule& rule,
                          typename Codec::chunker_type const& given,
                          int world) noexcept
{
  using chunker   = typename Codec::chunker_type;
  int const least = maximum(least_level(given), 0);
  int const half  = least > 0 ? 1 : 0;
  rule.exponent   = static_cast<std::uint32_t>(given.weighting * 65536.0f) >> half;
  rule.step_bits  = 7;
  int level       = 0;
  float lost      = 1.0f;  // without bits
  while (level < chunker::level_count) {
    int best    = 0;
    float worth = 0;
    for (int next = level + 1; next <= chunker::level_count; ++next) {
      float const less  = lost - level_distortion<Codec>(next, world);
      auto const words  = static_cast<float>(paid_words<Codec>(next) - paid_words<Codec>(level));
      float const a_bit = less / (words * (32.0f / Codec::chunk_size));
      if (a_bit > worth) {
        worth = a_bit;
        best  = next;
      }
    }
    if (level < least) { best = least; }
    if (best == 0) { break; }
    rule.level[rule.steps] = static_cast<std::uint32_t>(best);
    rule.cost[rule.steps] =
      (level_words<Codec>(best) - level_words<Codec>(level)) / selection_unit<Codec>();
    rule.offset[rule.steps] = numbered_offset(
      level < least ? least_offset : (key_bias + float_bits(worth) - float_bits(1.0f)) >> half,
      rule.steps);
    lost = level_distortion<Codec>(best, world);
    ++rule.steps;
    level = best;
  }
  for (int l = 1; l <= chunker::level_count; ++l) {
    rule.words[l] = level_words<Codec>(l) - (has_parts<Codec> ? 1 : 0);
  }
}

//! @brief What says how much the ranks agree on a chunk, M / S in `allocated_chunks`, from the scale of its mean.
struct agreement_rule {
  float square[max_levels + 1];  //!< On each level, the square of the scale times this is M.
  float
    lost[max_levels + 1];  //!< The errors of the ranks have so much of S, which M does not count.
  float typical;           //!< What is expected of a chunk of which nothing is known.
  float most;
  float share;  //!< A chunk counts so much more for each 1 above `typical`.
};

//! @brief What the codes of a level lose up and down.
struct ways_lost {
  float up;
  float down;
};

template <class Codec, int Level>
[[nodiscard]] constexpr ways_lost lost_on_level() noexcept
{
  using sent =
    typename Codec::quantizer_type::template with_bits<Codec::chunker_type::widths[Level - 1]>;
  if constexpr (allots_both_ways<Codec>) {
    return {sent::distortion(), mean_level<Codec, Level>::type::distortion()};
  }
  return {sent::distortion(), sent::distortion()};
}

template <class Codec, int Level = 1>
constexpr void set_squares(agreement_rule& rule, float gain) noexcept
{
  constexpr ways_lost lost = lost_on_level<Codec, Level>();
  rule.square[Level]       = gain / ((1 + lost.down) * (1 + lost.down));
  rule.lost[Level]         = lost.up;
  if constexpr (Level < Codec::chunker_type::level_count) {
    set_squares<Codec, Level + 1>(rule, gain);
  }
}

//! @brief A codebook is unbiased and loses L of the energy, so that codes of norm 1 with its scale have 1 + L of the energy, and the
//! scale is 1 + L times a root mean square. The sum of what ranks sent has the energy M and L S more.
template <class Codec>
requires(may_choose_by_agreement<Codec>) [[nodiscard]] constexpr agreement_rule
  agreement_rule_of(int world) noexcept
{
  agreement_rule rule{};
  auto const ranks = static_cast<float>(world);
  rule.most        = ranks;
  rule.typical     = maximum(ranks / 3, 1.0f);
  // Means, of which the squared norm is 1 / n^2 of M; a rotation that is not normalized has multiplied it.
  set_squares<Codec>(rule,
                     ranks * ranks * static_cast<float>(Codec::chunk_size) /
                       static_cast<float>(square_gain<typename Codec::rotator_type>));
  // What a bit more on the way down gains of M, over what it gains of S on the way up.
  constexpr ways_lost lost = lost_on_level<Codec, 1>();
  constexpr float down     = lost.down / lost.up;
  rule.share               = down / (1 + down * rule.typical);
  return rule;
}

//! @brief What the steps of that rule cost on the way down.
template <class Codec>
[[nodiscard]] constexpr mean_costs mean_costs_of(selection_rule const& rule,
                                                 std::uint32_t capacity) noexcept
{
  mean_costs out{};
  out.capacity = capacity;
  int level    = 0;
  for (std::uint32_t step = 0; step < rule.steps; ++step) {
    auto const next = static_cast<int>(rule.level[step]);
    out.cost[step]  = mean_level_words<Codec>(next) - mean_level_words<Codec>(level);
    level           = next;
  }
  for (int l = 1; l <= Codec::chunker_type::level_count; ++l) {
    out.words[l] = mean_level_words<Codec>(l) - 1;
  }
  return out;
}

}  // namespace tersum::inline v0::detail
