// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks: kernel bodies. A radix selection by histograms; nothing is sorted and nothing leaves the device.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/config.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr unsigned select_threads =
  static_cast<unsigned>(tuning_of<Context>.cuda.select_threads);
//! Shared memory of a block: one histogram, the room of `block_scan`, and what all threads must know.
inline constexpr int select_shared = (digit_count + 32 + 4) * 4;
//! The phases are: histograms of three digits, ties, places. One block does them in one launch, several blocks in
//! one launch for each.
inline constexpr int select_phases = 5;

//! @brief Blocks of a selection's launches.
[[nodiscard]] constexpr std::uint64_t select_blocks(std::uint64_t chunks,
                                                    cuda_tuning const& tuning) noexcept
{
  if (chunks <= tuning.select_alone) { return chunks == 0 ? 0 : 1; }
  auto const threads                 = static_cast<std::uint64_t>(tuning.select_threads);
  std::uint64_t const chunks_a_block = tuning.select_chunks * threads;
  // A block adds up what the others have counted, a thread one of them.
  std::uint64_t const most = minimum<std::uint64_t>(selection_scratch::max_blocks, threads);
  return minimum((chunks + chunks_a_block - 1) / chunks_a_block, most);
}

//! @brief body(first phase, the one after the last) for each launch of so many blocks: one launch for all phases or, in
//! several blocks, one for each.
template <class Body>
void each_select_launch(std::uint64_t blocks, Body const& body)
{
  int const at_once = blocks == 1 ? select_phases : 1;
  for (int phase = 0; phase < select_phases; phase += at_once) { body(phase, phase + at_once); }
}

//! @brief One block's part of a selection.
//!
//! A block has neighbouring chunks, and takes one a thread at a time. It reads their norms for the first and the second digit and for
//! the places. Chunks whose level the first digit leaves open are kept in the meantime: their values, in ascending order of
//! chunks, where their places will be.
//! @tparam Levels  Of the chunker, besides none.
//! @tparam Args    Has `chunks`, how many there are, and `selection`, of `selection_args`; and there are
//!                 selection_energy(ctx, args, chunk), an integer that ascends with the chunk's energy, and
//!                 selection_turn(args), by which ties take turns.
template <unsigned Levels, class Args, class Context>
struct block_selection {
  static constexpr unsigned levels  = Levels;
  static constexpr unsigned threads = select_threads<Context>;
  //! Whether chunks are listed by their levels.
  static constexpr bool orders = requires(Args const& a) { a.selection.order; };
  static_assert(digit_count % threads == 0 && threads % 32 == 0 && threads <= 1024,
                "tersum: cuda_tuning.select_threads must be a power of two from 32 to 1024");

  Context const& ctx;
  Args const& args;
  std::uint32_t* shared    = static_cast<std::uint32_t*>(ctx.shared());
  std::uint32_t* scan_room = shared + digit_count;
  std::uint32_t* shown     = shared + digit_count + 32;
  std::uint32_t threshold  = 0;                             //!< The digits that are known.
  std::uint32_t remaining  = args.selection.rule.capacity;  //!< In the end: ties that are paid.

  //! The chunks of this block: those of later blocks have larger numbers.
  struct run {
    std::uint64_t begin;
    std::uint32_t count;
  };

  [[nodiscard]] TERSUM_BODY run own_run() const
  {
    std::uint64_t const all   = static_cast<std::uint64_t>(ctx.grid_blocks()) * threads;
    std::uint64_t const each  = (args.chunks + all - 1) / all * threads;
    std::uint64_t const begin = minimum(ctx.block_rank() * each, args.chunks);
    return {begin, static_cast<std::uint32_t>(minimum(each, args.chunks - begin))};
  }

  //! How many of them have an open level.
  [[nodiscard]] TERSUM_BODY std::uint32_t* own_open() const
  {
    return args.selection.scratch->open(ctx.block_rank());
  }

  [[nodiscard]] TERSUM_BODY std::uint32_t value_of(std::uint64_t chunk) const
  {
    return selection_value(args.selection.rule, selection_energy(ctx, args, chunk));
  }

  //! The sum of the values of the threads with lower numbers; `total` becomes that of all threads of the block.
  [[nodiscard]] TERSUM_BODY std::uint32_t scan(std::uint32_t value, std::uint32_t& total) const
  {
    return ctx.template block_scan<threads>(value, total, scan_room);
  }

  [[nodiscard]] TERSUM_BODY std::uint32_t sum(std::uint32_t value) const
  {
    return ctx.template block_sum<threads>(value, scan_room);
  }

  //! What the launches before this one found.
  TERSUM_BODY void recall(int passes)
  {
    if (passes == 0) { return; }
    std::uint32_t const* const found = args.selection.scratch->found(passes - 1);
    threshold                        = ctx.load(found);
    remaining                        = ctx.load(found + 1);
  }

  //! Finds the digit of a pass from its histogram. Every block finds the same, and the first one keeps it.
  TERSUM_BODY void find_digit(int pass)
  {
    unsigned const t                     = ctx.thread_rank();
    std::uint32_t const* const histogram = args.selection.scratch->histogram[pass];
    std::uint32_t const top              = pass == 2 ? 1023u : 2047u;
    // Each thread has some digits next to each other, the first thread those at the top; it loads up to four of them at once.
    constexpr unsigned each = digit_count / threads, at_once = minimum(each, 4u);
    struct alignas(4 * at_once) digits {
      std::uint32_t cost[at_once];
    };
    std::uint32_t costs[each] = {};
    std::uint32_t own         = 0;
    if (each * t <= top) {
      TERSUM_UNROLL
      for (unsigned i = 0; i < each; i += at_once) {
        std::uint32_t const lowest = top + 1u - each * t - i - at_once;
        digits const some          = ctx.load(reinterpret_cast<digits const*>(histogram + lowest));
        TERSUM_UNROLL
        for (unsigned k = 0; k < at_once; ++k) {
          costs[i + k] = some.cost[at_once - 1 - k];
          own += costs[i + k];
        }
      }
    }
    std::uint32_t total;
    std::uint32_t before = scan(own, total);
    TERSUM_UNROLL
    for (unsigned i = 0; i < each; ++i) {
      if (each * t + i <= top) {
        std::uint32_t const digit = top - each * t - i;
        if (before <= remaining && (digit == 0 || before + costs[i] > remaining)) {
          shown[0] = digit;
          shown[1] = remaining - before;
        }
      }
      before += costs[i];
    }
    ctx.sync_block();
    threshold |= shown[0] << digit_shift(pass);
    remaining = shown[1];
    if (pass == digit_passes - 1) {
      remaining = paid_ties(args.selection.rule, threshold, remaining);
    }
    if (ctx.block_rank() == 0 && t == 0) {
      std::uint32_t* const found = args.selection.scratch->found(pass);
      ctx.store(found, threshold);
      ctx.store(found + 1, remaining);
    }
    ctx.sync_block();
  }

  //! The next number of a level. Each level is compared with: an array that is indexed would not lie in registers.
  TERSUM_BODY static void count(std::uint32_t (&counts)[levels], std::uint32_t level)
  {
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) { counts[l] += level == l + 1 ? 1u : 0u; }
  }

  //! Adds the counts of all threads to those of the block, or begins with them.
  TERSUM_BODY void keep_counts(std::uint32_t const (&counts)[levels], bool first) const
  {
    std::uint32_t* const kept = args.selection.scratch->counts[ctx.block_rank()];
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      std::uint32_t const total = sum(counts[l]);
      if (ctx.thread_rank() == 0) {
        ctx.store(kept + l, first ? total : ctx.load(kept + l) + total);
      }
    }
  }

  //! Counts the digits of a pass, of the chunks that the passes before leave open, and those chunks whose level they tell.
  TERSUM_BODY void add_histogram(int pass)
  {
    selection_rule const& rule = args.selection.rule;
    unsigned const t           = ctx.thread_rank();
    for (unsigned i = t; i < digit_count; i += threads) { shared[i] = 0; }
    ctx.sync_block();
    run const mine               = own_run();
    std::uint32_t* const values  = args.selection.places + mine.begin;
    std::uint32_t const all      = pass < 2 ? mine.count : ctx.load(own_open());
    std::uint32_t open           = 0;
    std::uint32_t counts[levels] = {};
    for (std::uint32_t at = t; at - t < all; at += threads) {
      std::uint32_t value = 0, level = 0;
      bool is_open = false;
      if (at < all) {
        value = pass < 2 ? value_of(mine.begin + at) : ctx.load(values + at);
        TERSUM_UNROLL_TWICE
        for (std::uint32_t step = 0; step < rule.steps; ++step) {
          std::uint32_t const key = selection_key(rule, step, value);
          if (begins_with(key, threshold, pass)) {
            is_open = true;
            ctx.atomic_add(shared + digit_of(key, pass), rule.cost[step]);
          } else if (key > threshold) {
            level = rule.level[step];
          }
        }
      }
      if (pass > 0) {
        // All have read their values before one writes: there are barriers in the sum.
        std::uint32_t total;
        std::uint32_t const before = scan(is_open ? 1u : 0u, total);
        if (is_open) {
          ctx.store(values + open + before, value);
        } else {
          count(counts, level);
        }
        open += total;
      }
    }
    ctx.sync_block();
    std::uint32_t* const histogram = args.selection.scratch->histogram[pass];
    for (unsigned i = t; i < digit_count; i += threads) {
      if (shared[i] != 0) { ctx.atomic_add(histogram + i, shared[i]); }
    }
    if (pass > 0) {
      keep_counts(counts, pass == 1);
      if (t == 0) { ctx.store(own_open(), open); }
    }
    ctx.sync_block();
  }

  //! The sum of `own` over the threads below this block's number, and over all: of what the blocks have, a thread each.
  [[nodiscard]] TERSUM_BODY std::uint32_t sum_below(std::uint32_t own, std::uint32_t& total) const
  {
    total = sum(own);
    return sum(ctx.thread_rank() < ctx.block_rank() ? own : 0u);
  }

  //! Counts the ties of this block, and on each level its chunks whose level was open: as if no tie were taken.
  TERSUM_BODY void add_ties()
  {
    std::uint32_t const all           = ctx.load(own_open());
    std::uint32_t const* const values = args.selection.places + own_run().begin;
    std::uint32_t counts[levels]      = {};
    std::uint32_t ties                = 0;
    for (std::uint32_t at = ctx.thread_rank(); at < all; at += threads) {
      std::uint32_t tie_level;
      count(counts, level_above(args.selection.rule, ctx.load(values + at), threshold, tie_level));
      ties += tie_level > 0 ? 1u : 0u;
    }
    keep_counts(counts, false);
    std::uint32_t const total = sum(ties);
    if (ctx.thread_rank() == 0) {
      ctx.store(args.selection.scratch->ties + ctx.block_rank(), total);
    }
    ctx.sync_block();
  }

  //! All ties in the order of chunks. So many are taken, beginning with a first one and going on from number 0 behind the last.
  struct tie_order {
    std::uint32_t all, first, taken;

    //! How many of those with lower numbers than this one are taken.
    [[nodiscard]] TERSUM_BODY std::uint32_t taken_below(std::uint32_t number) const
    {
      std::uint32_t const from_first = minimum(maximum(number, first) - first, taken);
      return from_first + minimum(number, maximum(first + taken, all) - all);
    }
  };

  //! The places of the chunks of this block.
  TERSUM_BODY void find_places()
  {
    selection_rule const& rule  = args.selection.rule;
    run const mine              = own_run();
    std::uint32_t* const values = args.selection.places + mine.begin;
    // Thread t has the ties of block t, and how many there are below.
    unsigned const t          = ctx.thread_rank();
    bool const has_block      = t < ctx.grid_blocks();
    std::uint32_t const those = has_block ? ctx.load(args.selection.scratch->ties + t) : 0u;
    tie_order ties;
    std::uint32_t const below = scan(those, ties.all);
    ties.first                = first_tie(selection_turn(args), ties.all);
    ties.taken                = minimum(remaining, ties.all);
    std::uint32_t const taken = ties.taken_below(below + those) - ties.taken_below(below);
    if (t == ctx.block_rank()) {
      shown[0] = below;
      shown[1] = those == 0 || taken == 0 || taken == those ? 0u : 1u;
      shown[2] = taken;
    }
    std::uint32_t next[levels];
    begin_places(has_block, taken, next);
    std::uint32_t before = shown[0];
    bool const some      = shown[1] != 0;  // Most blocks take all of theirs, or none.
    bool const every     = shown[2] != 0;
    for (std::uint32_t at = t; at - t < mine.count; at += threads) {
      std::uint32_t level = 0, tie_level = 0, total;
      if (at < mine.count) {
        level = level_above(rule, value_of(mine.begin + at), threshold, tie_level);
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
        if constexpr (orders) {
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
        ctx.store(values + at, level == 0 ? 0u : number << place_shift | level);
        if constexpr (orders) {
          auto const chunk = static_cast<std::uint32_t>(mine.begin) + at;
          if (level == 0) { number = chunk - sent; }
          ctx.store(args.selection.order + (shared[level] + number), chunk);
        }
      }
    }
    ctx.sync_block();
  }

  //! The first place of this block on each level; and what the selection found, which the first block keeps.
  //! @param taken  Ties of block t that are taken, on thread t.
  TERSUM_BODY void begin_places(bool has_block,
                                std::uint32_t taken,
                                std::uint32_t (&next)[levels]) const
  {
    selection_rule const& rule = args.selection.rule;
    // All ties are the same step, from one level to another.
    std::uint32_t const step = tie_step(rule, threshold);
    std::uint32_t const to   = rule.level[step];
    std::uint32_t const from = step == 0 ? 0u : rule.level[step - 1];
    std::uint32_t const* const counts =
      args.selection.scratch->counts[has_block ? ctx.thread_rank() : 0u];
    selection_header found{};
    found.threshold = threshold;
    found.ties      = remaining;
    found.count[0]  = static_cast<std::uint32_t>(args.chunks);
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      std::uint32_t own = has_block ? ctx.load(counts + l) : 0u;
      if (to == l + 1) { own += taken; }
      if (from == l + 1) { own -= taken; }
      next[l] = sum_below(own, found.count[l + 1]);
      found.count[0] -= found.count[l + 1];
    }
    if (ctx.block_rank() == 0 && ctx.thread_rank() == 0) {
      place_levels(rule, found);
      args.selection.scratch->header = found;
    }
    if constexpr (orders) {
      // Where each level begins in the order. There are barriers before it is read.
      if (ctx.thread_rank() == 0) {
        std::uint32_t at = 0;
        TERSUM_UNROLL
        for (unsigned l = levels; l > 0; --l) {
          shared[l] = at;
          at += found.count[l];
        }
        shared[0] = at;
      }
    }
  }
};

//! @brief Applies the rule of a selection: the phases first .. last-1. The histograms must be zero before phase 0.
//!
//! `select_threads<Context>` threads and `select_shared` bytes of shared memory a block; all phases in one launch need one block.
//! Reads the norms three times, writes four bytes a chunk; and it writes and reads again four bytes of each chunk that the first
//! digit leaves open, and of each that the first two do.
template <unsigned Levels, class Args, class Context>
TERSUM_BODY void select_phases_of(Context const& ctx, Args const& args, int first, int last)
{
  block_selection<Levels, Args, Context> mine{ctx, args};
  mine.recall(minimum(maximum(first - 1, 0), digit_passes));
  for (int phase = first; phase < last; ++phase) {
    if (0 < phase && phase <= digit_passes) { mine.find_digit(phase - 1); }
    if (phase < digit_passes) {
      mine.add_histogram(phase);
    } else if (phase == 3) {
      mine.add_ties();
    } else {
      mine.find_places();
    }
  }
}

}  // namespace tersum::inline v0::detail
