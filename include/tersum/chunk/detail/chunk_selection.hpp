// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks on the CPU.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The least value of a chunk in which a step has that key or a larger one. If none: 2^32 - 1, which no chunk has.
[[nodiscard]] inline std::uint32_t first_value(selection_rule const& rule,
                                               std::uint32_t step,
                                               std::uint64_t key)
{
  if (key == 0) { return 0; }
  std::uint64_t const above = key < rule.offset[step] ? 0 : key - rule.offset[step];
  return static_cast<std::uint32_t>(minimum<std::uint64_t>(above + 1, 0xffffffffu));
}

//! @brief Applies a rule to the chunks 0 .. count-1, in a few passes over their energies. Nothing is sorted. The chunks are
//! cut into *shares*, one for each thread; the result does not depend on their number.
class chunk_selection {
 public:
  static constexpr int max_shares = 64;

  //! @param histogram  `digit_count` words of scratch memory.
  //! @param places     Out: each chunk's level and number, see `place_shift`.
  //! @param least      Chunks that a further thread must have.
  chunk_selection(int threads,
                  selection_rule const& rule,
                  std::uint64_t count,
                  std::uint32_t* histogram,
                  std::uint32_t* places,
                  std::uint64_t least = tuning{}.cpu.least_selected)
    : rule_(rule), count_(count), histogram_(histogram), places_(places)
  {
    auto const wanted = static_cast<std::uint64_t>(minimum(threads, max_shares));
    shares_           = static_cast<int>(maximum<std::uint64_t>(1, minimum(wanted, count / least)));
  }

  //! Applies the rule. energy(chunk) is the chunk's energy, as an integer in the same order; `turn` says which tie comes first.
  template <class Energy>
  void run(Energy const& energy, selection_header& header, std::uint64_t turn = 0)
  {
    header                     = {};
    header.ties                = find_threshold(energy, header.threshold);
    std::uint32_t const prefix = header.threshold;
    tie_step_                  = tie_step(rule_, prefix);
    for (std::uint32_t step = 0; step < rule_.steps; ++step) {
      above_[step]      = first_value(rule_, step, std::uint64_t{prefix} + 1);
      tie_[step]        = step == tie_step_ ? first_value(rule_, step, prefix) : above_[step];
      level_[step + 1u] = rule_.level[step];
    }
    number_chunks(find_ties(header.ties, turn), header.count);
    place_levels(rule_, header);
  }

 private:
  //! The threshold of the steps that the budget pays for, and how many ties it pays for.
  //! @param prefix  Out: the threshold; 0 before.
  template <class Energy>
  [[nodiscard]] std::uint32_t find_threshold(Energy const& energy, std::uint32_t& prefix)
  {
    std::uint32_t remaining = rule_.capacity;
    auto const find_digit   = [&]<int Pass>(auto const& value_of) {
      add_histograms([&](std::uint64_t begin, std::uint64_t end, std::uint32_t* histogram) {
        count_digits<Pass>(value_of, prefix, begin, end, histogram);
      });
      std::uint32_t digit = Pass == 2 ? 1023 : 2047;
      while (digit > 0 && histogram_[digit] <= remaining) { remaining -= histogram_[digit--]; }
      prefix |= digit << digit_shift(Pass);
    };
    auto const kept = [this](std::uint64_t chunk) { return places_[chunk]; };
    find_digit.template operator()<0>(
      [&](std::uint64_t chunk) { return places_[chunk] = selection_value(rule_, energy(chunk)); });
    find_digit.template operator()<1>(kept);
    find_digit.template operator()<2>(kept);
    return paid_ties(rule_, prefix, remaining);
  }

  //! Calls body(share, first chunk, end) for all shares, each on a thread.
  template <class Body>
  void each_share(Body const& body) const
  {
    auto const shares = static_cast<std::uint64_t>(shares_);
    parallel_for(shares_, shares, [&](std::uint64_t share) {
      body(share, count_ * share / shares, count_ * (share + 1) / shares);
    });
  }

  //! Adds up the histograms that body(first chunk, end, histogram) makes of all shares.
  template <class Body>
  void add_histograms(Body const& body) const
  {
    std::fill_n(histogram_, digit_count, 0u);
    if (shares_ == 1) { return body(0, count_, histogram_); }
    each_share([&](std::uint64_t, std::uint64_t begin, std::uint64_t end) {
      std::uint32_t own[digit_count] = {};
      body(begin, end, own);
      for (int digit = 0; digit < digit_count; ++digit) {
        if (own[digit] != 0) {
          __atomic_fetch_add(histogram_ + digit, own[digit], __ATOMIC_RELAXED);
        }
      }
    });
  }

  //! Counts the digits of a pass, of the keys that begin with the digits of `prefix`, by the costs of their steps. Chunks without
  //! energy need not be counted: the search never asks what keys of 0 cost.
  template <int Pass, class Value>
  void count_digits(Value const& value_of,
                    std::uint32_t prefix,
                    std::uint64_t begin,
                    std::uint64_t end,
                    std::uint32_t* histogram) const
  {
    // A key that begins so is so much above the prefix at most.
    constexpr std::uint32_t most = Pass == 0 ? ~0u : (1u << digit_shift(Pass - 1)) - 1;
    for (std::uint64_t chunk = begin; chunk < end; ++chunk) {
      std::uint32_t const value = value_of(chunk);
      if (value == 0) { continue; }
      for (std::uint32_t step = 0; step < rule_.steps; ++step) {
        std::uint32_t const above = value + (rule_.offset[step] - 1 - prefix);
        if (above <= most) { histogram[above >> digit_shift(Pass)] += rule_.cost[step]; }
      }
    }
  }

  //! Whose ties are taken: those of the chunks begin .. end-1, or of all others.
  struct tied_chunks {
    std::uint64_t begin, end;
    bool others;
  };

  [[nodiscard]] bool has_tie(std::uint64_t chunk) const
  {
    return places_[chunk] - tie_[tie_step_] < above_[tie_step_] - tie_[tie_step_];
  }

  [[nodiscard]] tied_chunks find_ties(std::uint32_t paid, std::uint64_t turn) const
  {
    std::uint32_t ties[max_shares];
    each_share([&](std::uint64_t share, std::uint64_t begin, std::uint64_t end) {
      std::uint32_t sum = 0;
      for (std::uint64_t chunk = begin; chunk < end; ++chunk) { sum += has_tie(chunk) ? 1u : 0u; }
      ties[share] = sum;
    });
    std::uint32_t all = 0;
    for (int share = 0; share < shares_; ++share) { all += ties[share]; }
    if (paid >= all) { return {0, count_, false}; }
    std::uint32_t const first = first_tie(turn, all);
    if (paid <= all - first) {
      return {find_tie(ties, first), find_tie(ties, first + paid), false};
    }
    return {find_tie(ties, first + paid - all), find_tie(ties, first), true};
  }

  //! The chunk of a tie, by its number; the end if there is no such tie.
  [[nodiscard]] std::uint64_t find_tie(std::uint32_t const (&ties)[max_shares],
                                       std::uint32_t number) const
  {
    std::uint64_t share = 0;
    for (; share + 1 < static_cast<std::uint64_t>(shares_) && number >= ties[share]; ++share) {
      number -= ties[share];
    }
    std::uint64_t chunk = count_ * share / static_cast<std::uint64_t>(shares_);
    for (; chunk < count_; ++chunk) {
      if (has_tie(chunk) && number-- == 0) { break; }
    }
    return chunk;
  }

  //! Replaces the chunks' values by their places, and counts the chunks of each level.
  void number_chunks(tied_chunks const& taken, std::uint32_t (&total)[max_levels + 1]) const
  {
    // Of each share: first the next place of each level within it, then how many places come before it.
    std::uint32_t next[max_shares][max_levels + 1];
    std::uint32_t const* const outer = taken.others ? tie_ : above_;
    std::uint32_t const* const inner = taken.others ? above_ : tie_;
    each_share([&](std::uint64_t share, std::uint64_t begin, std::uint64_t end) {
      for (std::uint32_t level = 0; level <= max_levels; ++level) { next[share][level] = level; }
      std::uint64_t const from = minimum(maximum(begin, taken.begin), end);
      std::uint64_t const to   = minimum(maximum(begin, taken.end), end);
      number_range(begin, from, outer, next[share]);
      number_range(from, to, inner, next[share]);
      number_range(to, end, outer, next[share]);
    });
    total[0] = static_cast<std::uint32_t>(count_);
    for (int share = 0; share < shares_; ++share) {
      for (int level = 1; level <= max_levels; ++level) {
        std::uint32_t const own = next[share][level] >> place_shift;
        next[share][level]      = total[level] << place_shift;
        total[level] += own;
        total[0] -= own;
      }
    }
    if (shares_ == 1) { return; }
    each_share([&](std::uint64_t share, std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t chunk = begin; chunk < end; ++chunk) {
        places_[chunk] += next[share][places_[chunk] & ((1u << place_shift) - 1)];
      }
    });
  }

  //! Numbers the places of some chunks of a share. A chunk takes the steps whose `least` its value reaches.
  void number_range(std::uint64_t begin,
                    std::uint64_t end,
                    std::uint32_t const* least,
                    std::uint32_t (&next)[max_levels + 1]) const
  {
    constexpr std::uint64_t block = 128;
    for (; begin < end; begin += block) {
      std::uint64_t const here   = minimum(block, end - begin);
      std::uint32_t* const place = places_ + begin;
      std::uint32_t taken[block] = {};
      for (std::uint32_t step = 0; step < rule_.steps; ++step) {
        for (std::uint64_t i = 0; i < here; ++i) { taken[i] += place[i] >= least[step] ? 1u : 0u; }
      }
      // The counters of all levels are bytes of one register: in memory they would make every chunk wait for the one
      // before. Nothing here branches, since levels are hard to predict. Chunks of level 0 are not counted.
      std::uint64_t seen = 0;
      for (std::uint64_t i = 0; i < here; ++i) {
        std::uint32_t const level = level_[taken[i]];
        auto const before         = static_cast<std::uint32_t>(seen >> 8 * level & 255u);
        place[i]                  = next[level] + (before << place_shift);
        seen += (std::uint64_t{1} << 8 * level) & ~std::uint64_t{1};
      }
      for (int level = 1; level <= max_levels; ++level) {
        next[level] += static_cast<std::uint32_t>(seen >> 8 * level & 255u) << place_shift;
      }
    }
  }

  selection_rule const& rule_;
  std::uint64_t count_;
  std::uint32_t* histogram_;
  std::uint32_t* places_;
  int shares_;
  std::uint32_t tie_step_ = 0;  // the step whose keys can be the threshold
  std::uint32_t tie_[max_levels] =
    {};  // of each step: the least value with which its key is the threshold or above it
  std::uint32_t above_[max_levels] =
    {};  // of each step: the least value with which its key is above it
  std::uint32_t level_[max_levels + 1] = {};  // the level of a chunk that has taken so many steps
};

}  // namespace tersum::inline v0::detail
