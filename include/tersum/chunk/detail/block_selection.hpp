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
//! The phases are: histograms of three digits, ties, counts, places. One block does them in one launch, several blocks in
//! one launch for each.
inline constexpr int select_phases = 6;

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
//! @tparam Args    Has `chunks`, how many there are, and `selection`, of `selection_args`; and there is
//!                 selection_energy(ctx, args, chunk), an integer that ascends with the chunk's energy.
template <unsigned Levels, class Args, class Context>
struct block_selection {
  static constexpr unsigned levels  = Levels;
  static constexpr unsigned threads = select_threads<Context>;
  static_assert(digit_count % threads == 0 && threads % 32 == 0 && threads <= 1024,
                "tersum: cuda_tuning.select_threads must be a power of two from 32 to 1024");

  Context const& ctx;
  Args const& args;
  std::uint32_t* shared    = static_cast<std::uint32_t*>(ctx.shared());
  std::uint32_t* scan_room = shared + digit_count;
  std::uint32_t* shown     = shared + digit_count + 32;
  std::uint32_t threshold  = 0;  //!< The digits that are known.
  std::uint32_t remaining  = args.selection.rule.capacity;

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

  //! The sum of `values[i stride]` over the blocks i with lower numbers than this one, and over all blocks.
  [[nodiscard]] TERSUM_BODY std::uint32_t sum_below(std::uint32_t const* values,
                                                    unsigned stride,
                                                    std::uint32_t& total) const
  {
    unsigned const t        = ctx.thread_rank();
    std::uint32_t const own = t < ctx.grid_blocks() ? ctx.load(values + t * stride) : 0u;
    total                   = sum(own);
    return sum(t < ctx.block_rank() ? own : 0u);
  }

  //! What the steps of this block that equal the threshold cost.
  TERSUM_BODY void add_ties()
  {
    std::uint32_t const all           = ctx.load(own_open());
    std::uint32_t const* const values = args.selection.places + own_run().begin;
    std::uint32_t cost                = 0;
    for (std::uint32_t at = ctx.thread_rank(); at < all; at += threads) {
      std::uint32_t tie_level, tie_cost;
      static_cast<void>(
        level_above(args.selection.rule, ctx.load(values + at), threshold, tie_level, tie_cost));
      cost += tie_cost;
    }
    std::uint32_t const total = sum(cost);
    if (ctx.thread_rank() == 0) {
      ctx.store(args.selection.scratch->ties + ctx.block_rank(), total);
    }
    ctx.sync_block();
  }

  //! Calls visit(i, level) for `all` chunks of this block in ascending order, on all threads together: those with
  //! i >= `all` have level 0.
  template <class Value, class Visitor>
  TERSUM_BODY void visit_levels(std::uint32_t all, Value const& value, Visitor const& visit) const
  {
    std::uint32_t total;
    std::uint32_t ties      = sum_below(args.selection.scratch->ties, 1, total);
    std::uint32_t const own = ctx.load(args.selection.scratch->ties + ctx.block_rank());
    // Most blocks take all of theirs, or none.
    bool const some = ties < remaining && own > remaining - ties;
    for (std::uint32_t first = 0; first < all; first += threads) {
      std::uint32_t const i = first + ctx.thread_rank();
      std::uint32_t level = 0, tie_level = 0, tie_cost = 0;
      if (i < all) {
        level = level_above(args.selection.rule, value(i), threshold, tie_level, tie_cost);
      }
      bool taken = ties < remaining;
      if (some) {
        taken = ties + scan(tie_cost, total) + tie_cost <= remaining;
        ties += total;
      }
      if (taken && tie_cost > 0) { level = tie_level; }
      visit(i, level);
    }
  }

  TERSUM_BODY void add_counts()
  {
    std::uint32_t const* const values = args.selection.places + own_run().begin;
    std::uint32_t counts[levels]      = {};
    visit_levels(
      ctx.load(own_open()),
      [&](std::uint32_t i) { return ctx.load(values + i); },
      [&](std::uint32_t, std::uint32_t level) { count(counts, level); });
    keep_counts(counts, false);
    ctx.sync_block();
  }

  TERSUM_BODY void place_chunks()
  {
    run const mine             = own_run();
    std::uint32_t next[levels] = {};
    selection_header found{};
    found.threshold = threshold;
    found.remaining = remaining;
    found.count[0]  = static_cast<std::uint32_t>(args.chunks);
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      next[l] = sum_below(&args.selection.scratch->counts[0][l], max_levels, found.count[l + 1]);
      found.count[0] -= found.count[l + 1];
    }
    if (ctx.block_rank() == 0 && ctx.thread_rank() == 0) {
      place_levels(args.selection.rule, found);
      args.selection.scratch->header = found;
    }
    visit_levels(
      mine.count,
      [&](std::uint32_t i) { return value_of(mine.begin + i); },
      [&](std::uint32_t i, std::uint32_t level) {
        // Two levels in the halves of a word: a block has no more threads than a half holds.
        std::uint32_t number = 0;
        TERSUM_UNROLL
        for (unsigned l = 0; l < levels; l += 2) {
          std::uint32_t total;
          std::uint32_t const before =
            scan((level == l + 1 ? 1u : 0u) | (level == l + 2 ? 0x10000u : 0u), total);
          if (level == l + 1) { number = next[l] + (before & 0xffffu); }
          next[l] += total & 0xffffu;
          if (l + 1 < levels) {
            if (level == l + 2) { number = next[l + 1] + (before >> 16); }
            next[l + 1] += total >> 16;
          }
        }
        if (i < mine.count) {
          ctx.store(args.selection.places + mine.begin + i,
                    level == 0 ? 0u : number << place_shift | level);
        }
      });
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
    } else if (phase == 4) {
      mine.add_counts();
    } else {
      mine.place_chunks();
    }
  }
}

}  // namespace tersum::inline v0::detail
