// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks on the CPU.

#pragma once

#include <tersum/chunk/selection.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Applies the rule to the chunks 0 .. count-1, in a few passes over their energies; no sorting.
//! @param energy     energy(chunk): an integer that ascends with the chunk's energy.
//! @param histogram  `digit_count` words of scratch memory.
//! @param places     Out: each chunk's level and number, see `place_shift`.
template <class Energy>
void select_chunks(selection_rule const& rule,
                   std::uint64_t count,
                   Energy const& energy,
                   std::uint32_t* histogram,
                   selection_header& header,
                   std::uint32_t* places)
{
  // The energies wait where the places will be.
  for (std::uint64_t chunk = 0; chunk < count; ++chunk) { places[chunk] = energy(chunk); }
  std::uint32_t prefix    = 0;
  std::uint32_t remaining = rule.capacity;
  for (int pass = 0; pass < digit_passes; ++pass) {
    std::fill_n(histogram, digit_count, 0u);
    for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
      std::uint32_t const bits = places[chunk];
      for (std::uint32_t step = 0; step < rule.steps; ++step) {
        std::uint32_t const digit = digit_of(selection_key(rule, step, bits), prefix, pass);
        if (digit < digit_count) { histogram[digit] += rule.cost[step]; }
      }
    }
    std::uint32_t digit = pass == 2 ? 1023 : 2047;
    while (digit > 0 && histogram[digit] <= remaining) { remaining -= histogram[digit--]; }
    prefix |= digit << digit_shift(pass);
  }

  header                               = {};
  header.threshold                     = prefix;
  header.remaining                     = remaining;
  std::uint32_t counts[max_levels + 1] = {};
  std::uint64_t ties                   = 0;
  for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
    std::uint32_t tie_level, tie_cost;
    std::uint32_t level = level_above(rule, places[chunk], prefix, tie_level, tie_cost);
    ties += tie_cost;
    if (tie_cost > 0 && ties <= remaining) { level = tie_level; }
    places[chunk] = level == 0 ? 0u : counts[level] << place_shift | level;
    ++counts[level];
  }
  for (int level = 0; level <= max_levels; ++level) { header.count[level] = counts[level]; }
  place_levels(rule, header);
}

}  // namespace tersum::inline v0::detail
