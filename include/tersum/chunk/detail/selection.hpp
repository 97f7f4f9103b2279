// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which chunks travel, and with how many bits: the rule that every executor applies to the agreed norms.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

namespace detail {

//! A chunk's place: its level in the low bits, above them its number among the chunks of that level.
inline constexpr int place_shift = 3;

}  // namespace detail

//! @brief A chunk's level, and its number among the chunks of that level in ascending order (0 if it stays).
struct chunk_place {
  std::uint32_t level;
  std::uint32_t number;

  //! From what `select_chunks` wrote.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr chunk_place of(std::uint32_t place) noexcept
  {
    return {place & ((1u << detail::place_shift) - 1), place >> detail::place_shift};
  }
};

}  // namespace tersum::inline v0

namespace tersum::inline v0::detail {

//! @brief Where a chunk lies in the payload: its level, 0 for not at all, and its first word.
struct payload_place {
  std::uint32_t level;
  std::uint64_t word;
};

inline constexpr int max_levels = 7;  //!< Widths that a chunk can have, besides none.

//! @brief The steps from one width of a chunk to a larger one, and what all steps of all chunks together may cost.
//!
//! In each chunk every step has a key: the more the step is worth per bit, the larger its key. The later steps of a chunk
//! have smaller keys than the earlier ones, and with several widths the low bits of a key number the step. A selection
//! takes all steps whose key is above a threshold. The threshold is the lowest that the capacity allows. Steps whose key
//! equals it are *ties*: the same step of different chunks. They are numbered in the order of chunks, and as many as fit
//! are taken, from `first_tie` on and, after the last one, from number 0 on.
struct selection_rule {
  std::uint32_t steps;               //!< Steps of a chunk, at most `max_levels`.
  std::uint32_t level[max_levels];   //!< The level that a step ends on, 1 and up.
  std::uint32_t cost[max_levels];    //!< Its cost in units.
  std::uint32_t offset[max_levels];  //!< Its worth: added to the logarithm of the energy.
  std::uint32_t exponent;            //!< Of the energy, in 1 / 65536.
  std::uint8_t weighted;             //!< Whether tensors have weights other than 1.
  std::uint16_t step_bits;           //!< Low bits of keys that number the step: 7, or 0 for none.
  std::uint32_t capacity;            //!< Units that all steps of all chunks may cost.
  std::uint32_t unit_words;          //!< Words of the payload in a unit.
  std::uint32_t words[max_levels + 1];  //!< Words of a chunk on each level.
};

//! Added to all offsets, so that no key is below zero.
inline constexpr std::uint32_t key_bias = 1u << 29;

//! @brief The energy of a chunk as an integer in the same order: the bits of the float.
template <class Scalar>
[[nodiscard]] TERSUM_INLINE std::uint32_t energy_bits(Scalar agreed)
{
  std::uint32_t const bits = float_bits(to_float(agreed));
  return bits < 0x7f800000u ? bits : 0x7f800000u;
}

//! @brief The step whose keys can equal a threshold. Chunks without energy compete with their first step only.
[[nodiscard]] TERSUM_INLINE std::uint32_t tie_step(selection_rule const& rule,
                                                   std::uint32_t threshold)
{
  return threshold == 0 ? 0u : minimum(~threshold & std::uint32_t{rule.step_bits}, rule.steps - 1u);
}

//! @brief How many ties so many units pay for.
[[nodiscard]] TERSUM_INLINE std::uint32_t paid_ties(selection_rule const& rule,
                                                    std::uint32_t threshold,
                                                    std::uint32_t units)
{
  return units / maximum(rule.cost[tie_step(rule, threshold)], 1u);
}

//! @brief The number of the tie that comes first: all ties times the fractional part of `turn` times the golden ratio.
//!
//! With so many ties that a share p of them fits, each is taken in any 2 / p turns that follow one another: multiples of the
//! golden ratio leave no gap above 1.9 / n among n of them, wherever they begin, which no other number does better.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t first_tie(std::uint64_t turn,
                                                              std::uint32_t ties) noexcept
{
  return static_cast<std::uint32_t>((turn * 0x9e3779b97f4a7c15u >> 32) * ties >> 32);
}

//! @brief The value of a chunk, from which the keys of all its steps follow. Without energy it is 0, otherwise larger.
[[nodiscard]] TERSUM_INLINE std::uint32_t selection_value(selection_rule const& rule,
                                                          std::uint32_t energy)
{
  std::uint64_t const weighted = static_cast<std::uint64_t>(energy) * rule.exponent >> 16;
  return energy == 0 ? 0u
                     : (static_cast<std::uint32_t>(weighted) & ~std::uint32_t{rule.step_bits}) + 1u;
}

//! @brief The key of one step in a chunk of that value; 0 in a chunk without energy.
[[nodiscard]] TERSUM_INLINE std::uint32_t selection_key(selection_rule const& rule,
                                                        std::uint32_t step,
                                                        std::uint32_t value)
{
  return value == 0 ? 0u : value + (rule.offset[step] - 1u);
}

//! @brief The energy of one coordinate: its magnitude.
[[nodiscard]] TERSUM_INLINE std::uint32_t magnitude_bits(float value)
{
  return minimum(float_bits(value) & 0x7fffffffu, 0x7f800000u);
}

//! @brief Three digits make a key: 11, 11 and 10 bits.
inline constexpr int digit_passes = 3;
inline constexpr int digit_count  = 2048;

[[nodiscard]] TERSUM_INLINE constexpr int digit_shift(int pass) noexcept
{
  return pass == 0 ? 21 : pass == 1 ? 10 : 0;
}

//! @brief The digit of a key in a pass.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t digit_of(std::uint32_t key, int pass) noexcept
{
  return key >> digit_shift(pass) & (pass == 2 ? 1023u : 2047u);
}

//! @brief Whether a key begins with the digits of a prefix that are known before a pass.
[[nodiscard]] TERSUM_INLINE constexpr bool begins_with(std::uint32_t key,
                                                       std::uint32_t prefix,
                                                       int pass) noexcept
{
  return pass == 0 || (key ^ prefix) >> digit_shift(pass - 1) == 0;
}

//! @brief What a selection found, in the workspace: the same on every rank.
struct selection_header {
  std::uint32_t threshold;              //!< Steps with larger keys are taken.
  std::uint32_t ties;                   //!< At most so many that equal it are taken.
  std::uint32_t count[max_levels + 1];  //!< Chunks on each level.
  std::uint64_t
    base[max_levels + 1];  //!< First payload word of each level; the widest comes first.
};
static_assert(sizeof(selection_header) == 104);

//! @brief Scratch memory of a selection: what was found, histograms, and what the blocks have counted that share the work.
struct selection_scratch {
  static constexpr int max_blocks = 256;
  selection_header header;
  std::uint32_t padding[2];
  std::uint32_t histogram[digit_passes][digit_count];
  std::uint32_t counts[max_levels + 1][max_blocks];  //!< Ties, and chunks on each level.
};
static_assert(sizeof(selection_scratch) % 16 == 0);

//! @brief What a selection works with, in memory of the executor but for the rule.
struct selection_args {
  selection_rule rule;
  selection_scratch* scratch;
  std::uint32_t* places;  // one a chunk; until they are known, values of chunks

  //! Whether the budget pays for anything.
  [[nodiscard]] TERSUM_INLINE bool pays() const { return rule.capacity > 0; }
};

//! @brief The same where the chunks are also listed by their levels, for kernels that take them in that order.
struct ordered_selection_args : selection_args {
  std::uint32_t*
    order;  // one a chunk: the highest level first, then those on none; ascending on each
};

//! @brief The level of a chunk after all steps whose keys are above the threshold. `tie_level` becomes that after the step whose
//! key equals it; 0 if there is none.
[[nodiscard]] TERSUM_INLINE std::uint32_t level_above(selection_rule const& rule,
                                                      std::uint32_t value,
                                                      std::uint32_t threshold,
                                                      std::uint32_t& tie_level)
{
  std::uint32_t level = 0;
  tie_level           = 0;
  TERSUM_UNROLL_TWICE
  for (std::uint32_t step = 0; step < rule.steps; ++step) {
    std::uint32_t const key = selection_key(rule, step, value);
    if (key > threshold) {
      level = rule.level[step];
    } else if (key == threshold && tie_level == 0) {
      tie_level = rule.level[step];
    }
  }
  return level;
}

//! @brief First words of the levels, the widest first.
TERSUM_INLINE void place_levels(selection_rule const& rule, selection_header& header)
{
  std::uint64_t at = 0;
  TERSUM_UNROLL
  for (int level = max_levels; level >= 1; --level) {
    header.base[level] = at;
    at += static_cast<std::uint64_t>(header.count[level]) * rule.words[level];
  }
  header.base[0] = at;
}

}  // namespace tersum::inline v0::detail
