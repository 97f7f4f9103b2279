// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks: kernel bodies.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/chunk/detail/selection_block.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief One block's part of a selection: behind the search for the threshold, the places of its chunks.
//! @tparam Levels  Of the chunker, besides none.
template <unsigned Levels, class Args, class Context>
struct block_selection : selection_block<Args, Context> {
  using base = selection_block<Args, Context>;
  using base::alone;
  using base::args;
  using base::arrive;
  using base::ctx;
  using base::kept_value;
  using base::orders;
  using base::own_run;
  using base::remaining;
  using base::scan;
  using base::shared;
  using base::shown;
  using base::threads;
  using base::threshold;
  using base::wait;
  using typename base::run;

  static constexpr unsigned levels = Levels;
  static constexpr unsigned warps  = threads / 32;

  //! @name In shared memory, of ties and of each level: counts of the blocks below this one, and of all
  //! @{
  [[nodiscard]] TERSUM_BODY std::uint32_t* counts_below() const { return shared + 1024; }
  [[nodiscard]] TERSUM_BODY std::uint32_t* counts_of_all() const { return shared + 1024 + 8; }
  //! Where each level begins in the order.
  [[nodiscard]] TERSUM_BODY std::uint32_t* order_begins() const { return shared + 1024 + 16; }
  //! @}

  //! Counts the ties of this block, and its chunks on each level as if no tie were taken.
  TERSUM_BODY void count_levels() const
  {
    std::uint32_t counts[levels + 1] = {};  // ties first
    run const mine                   = own_run();
    for (std::uint32_t at = ctx.thread_rank(); at < mine.count; at += threads) {
      std::uint32_t tie_level;
      std::uint32_t const level =
        level_above(args.selection.rule, kept_value(mine, at), threshold, tie_level);
      counts[0] += tie_level > 0 ? 1u : 0u;
      // Each level is compared with: an array that is indexed would not lie in registers.
      TERSUM_UNROLL
      for (unsigned l = 1; l <= levels; ++l) { counts[l] += level == l ? 1u : 0u; }
    }
    unsigned const lane = ctx.thread_rank() % 32, warp = ctx.thread_rank() / 32;
    TERSUM_UNROLL
    for (unsigned l = 0; l <= levels; ++l) {
      std::uint32_t const of_warp = ctx.warp_sum(counts[l]);
      if (lane == 0) { ctx.store(shared + 32 * l + warp, of_warp); }
    }
    ctx.sync_block();
    for (unsigned l = warp; l <= levels; l += warps) {
      std::uint32_t const own = lane < warps ? ctx.load(shared + 32 * l + lane) : 0u;
      std::uint32_t const all = ctx.warp_sum(own);
      if (lane == 0) {
        if (l == 0) { shown[0] = all; }
        counts_below()[l]  = 0;
        counts_of_all()[l] = all;
        if (!alone()) { ctx.store(args.selection.scratch->counts[l] + ctx.block_rank(), all); }
      }
    }
  }

  //! Adds up what the blocks have counted, a warp what they have of one level.
  TERSUM_BODY void add_blocks() const
  {
    if (alone()) { return ctx.sync_block(); }
    wait(arrive());
    unsigned const lane = ctx.thread_rank() % 32, warp = ctx.thread_rank() / 32;
    for (unsigned l = warp; l <= levels; l += warps) {
      std::uint32_t below = 0, all = 0;
      TERSUM_UNROLL
      for (unsigned k = 0; k < selection_scratch::max_blocks; k += 32) {
        std::uint32_t const block = k + lane;
        std::uint32_t const own =
          block < ctx.grid_blocks() ? ctx.load(args.selection.scratch->counts[l] + block) : 0u;
        all += own;
        below += block < ctx.block_rank() ? own : 0u;
      }
      below = ctx.warp_sum(below);
      all   = ctx.warp_sum(all);
      if (lane == 0) {
        counts_below()[l]  = below;
        counts_of_all()[l] = all;
      }
    }
    ctx.sync_block();
  }

  //! The places of the chunks of this block, from what `add_blocks` found.
  TERSUM_BODY void find_places() const
  {
    selection_rule const& rule = args.selection.rule;
    run const mine             = own_run();
    tie_order ties;
    ties.all                  = counts_of_all()[0];
    ties.first                = first_tie(selection_turn(args), ties.all);
    ties.taken                = minimum(remaining, ties.all);
    std::uint32_t before      = counts_below()[0];
    std::uint32_t const own   = shown[0];
    std::uint32_t const below = ties.taken_below(before);
    std::uint32_t const taken = ties.taken_below(before + own) - below;
    bool const every          = taken != 0;
    bool const some           = every && taken != own;  // Most blocks take all of theirs, or none.
    std::uint32_t next[levels];
    begin_places(ties.taken, below, next);
    for (std::uint32_t at = ctx.thread_rank(); at - ctx.thread_rank() < mine.count; at += threads) {
      std::uint32_t level = 0, tie_level = 0, total;
      if (at < mine.count) {
        level = level_above(rule, kept_value(mine, at), threshold, tie_level);
      }
      bool takes = every;
      if (some) {
        std::uint32_t const tie = before + scan(tie_level > 0 ? 1u : 0u, total);
        takes                   = ties.taken_below(tie + 1) > ties.taken_below(tie);
        before += total;
      }
      if (takes) { level = maximum(level, tie_level); }
      // Two levels in the halves of a word: a block has no more threads than a half holds.
      std::uint32_t number                = 0;
      [[maybe_unused]] std::uint32_t sent = 0;  // chunks with lower numbers on any level
      TERSUM_UNROLL
      for (unsigned l = 0; l < levels; l += 2) {
        std::uint32_t const below_here =
          scan((level == l + 1 ? 1u : 0u) | (level == l + 2 ? 0x10000u : 0u), total);
        if (orders) {
          sent += next[l] + (below_here & 0xffffu);
          if (l + 1 < levels) { sent += next[l + 1] + (below_here >> 16); }
        }
        if (level == l + 1) { number = next[l] + (below_here & 0xffffu); }
        next[l] += total & 0xffffu;
        if (l + 1 < levels) {
          if (level == l + 2) { number = next[l + 1] + (below_here >> 16); }
          next[l + 1] += total >> 16;
        }
      }
      if (at < mine.count) {
        std::uint32_t const chunk = mine.begin + at;
        ctx.store(args.selection.places + chunk, level == 0 ? 0u : number << place_shift | level);
        if constexpr (orders) {
          if (level == 0) { number = chunk - sent; }
          ctx.store(args.selection.order + (order_begins()[level] + number), chunk);
        }
      }
    }
  }

  //! The first place of this block on each level; and what the selection found, which the first block keeps.
  //! @param taken  Ties that are taken, of all blocks.
  //! @param below  Of those below this one.
  TERSUM_BODY void begin_places(std::uint32_t taken,
                                std::uint32_t below,
                                std::uint32_t (&next)[levels]) const
  {
    selection_rule const& rule = args.selection.rule;
    // All ties are the same step, from one level to another.
    std::uint32_t const step = tie_step(rule, threshold);
    std::uint32_t const to   = rule.level[step];
    std::uint32_t const from = step == 0 ? 0u : rule.level[step - 1];
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      next[l] = counts_below()[l + 1];
      if (to == l + 1) { next[l] += below; }
      if (from == l + 1) { next[l] -= below; }
    }
    if (ctx.thread_rank() != 0 || !(orders || ctx.block_rank() == 0)) { return; }
    selection_header found{};
    found.threshold = threshold;
    found.ties      = remaining;
    found.count[0]  = static_cast<std::uint32_t>(args.chunks);
    TERSUM_UNROLL
    for (unsigned l = 1; l <= levels; ++l) {
      found.count[l] = counts_of_all()[l];
      if (to == l) { found.count[l] += taken; }
      if (from == l) { found.count[l] -= taken; }
      found.count[0] -= found.count[l];
    }
    if (orders) {
      // There are barriers before these are read.
      std::uint32_t at = 0;
      TERSUM_UNROLL
      for (unsigned l = levels; l > 0; --l) {
        order_begins()[l] = at;
        at += found.count[l];
      }
      order_begins()[0] = at;
    }
    if (ctx.block_rank() == 0) {
      place_levels(rule, found);
      args.selection.scratch->header = found;
    }
  }
};

//! @brief Applies the rule of a selection, in one launch: by one block, or by several that are resident together, with
//! `select_threads<Context>` threads and `select_shared` bytes of shared memory each. The choice does not depend on their number.
//!
//! Reads each norm once and writes four bytes a chunk; where a thread has several chunks it also writes four bytes of all but the first,
//! and reads them four times. What is in the scratch memory before is of no account.
template <unsigned Levels, class Args, class Context>
TERSUM_BODY void select_of(Context const& ctx, Args const& args)
{
  block_selection<Levels, Args, Context> mine{{ctx, args}};
  mine.find_threshold();
  mine.count_levels();
  mine.add_blocks();
  mine.find_places();
}

}  // namespace tersum::inline v0::detail
