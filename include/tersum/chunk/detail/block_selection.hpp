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
  int known                = 0;  //!< How many of them.

  //! The chunks of this thread lie one after the other: those of later threads and blocks have larger numbers.
  struct run {
    std::uint64_t begin, end;
  };

  [[nodiscard]] TERSUM_BODY run own_run() const
  {
    std::uint64_t const all  = static_cast<std::uint64_t>(ctx.grid_blocks()) * threads;
    std::uint64_t const each = (args.chunks + all - 1) / all;
    std::uint64_t const thread =
      static_cast<std::uint64_t>(ctx.block_rank()) * threads + ctx.thread_rank();
    return {minimum(thread * each, args.chunks), minimum((thread + 1) * each, args.chunks)};
  }

  [[nodiscard]] TERSUM_BODY std::uint32_t energy(std::uint64_t chunk) const
  {
    return selection_energy(ctx, args, chunk);
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

  //! Finds the digits of the passes below `passes` from their histograms. Every block finds the same.
  TERSUM_BODY void find_digits(int passes)
  {
    unsigned const t = ctx.thread_rank();
    for (; known < passes; ++known) {
      std::uint32_t const* const histogram = args.selection.scratch->histogram[known];
      std::uint32_t const top              = known == 2 ? 1023u : 2047u;
      // Each thread has some digits next to each other, the first thread those at the top.
      constexpr unsigned each   = digit_count / threads;
      std::uint32_t costs[each] = {};
      std::uint32_t own         = 0;
      TERSUM_UNROLL
      for (unsigned i = 0; i < each; ++i) {
        if (each * t + i <= top) { costs[i] = ctx.load(histogram + (top - each * t - i)); }
        own += costs[i];
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
      threshold |= shown[0] << digit_shift(known);
      remaining = shown[1];
      ctx.sync_block();
    }
  }

  TERSUM_BODY void add_histogram(int pass)
  {
    find_digits(pass);
    selection_rule const& rule = args.selection.rule;
    unsigned const t           = ctx.thread_rank();
    for (unsigned i = t; i < digit_count; i += threads) { shared[i] = 0; }
    ctx.sync_block();
    std::uint64_t const all = static_cast<std::uint64_t>(ctx.grid_blocks()) * threads;
    for (std::uint64_t chunk = static_cast<std::uint64_t>(ctx.block_rank()) * threads + t;
         chunk < args.chunks;
         chunk += all) {
      std::uint32_t const bits = energy(chunk);
      for (std::uint32_t step = 0; step < rule.steps; ++step) {
        std::uint32_t const digit = digit_of(selection_key(rule, step, bits), threshold, pass);
        if (digit < digit_count) { ctx.atomic_add(shared + digit, rule.cost[step]); }
      }
    }
    ctx.sync_block();
    std::uint32_t* const histogram = args.selection.scratch->histogram[pass];
    for (unsigned i = t; i < digit_count; i += threads) {
      if (shared[i] != 0) { ctx.atomic_add(histogram + i, shared[i]); }
    }
    ctx.sync_block();
  }

  //! What the steps of this thread's chunks that equal the threshold cost.
  [[nodiscard]] TERSUM_BODY std::uint32_t own_ties() const
  {
    run const mine     = own_run();
    std::uint32_t cost = 0;
    for (std::uint64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
      std::uint32_t tie_level, tie_cost;
      static_cast<void>(
        level_above(args.selection.rule, energy(chunk), threshold, tie_level, tie_cost));
      cost += tie_cost;
    }
    return cost;
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

  //! Calls visit(chunk, level) for this thread's chunks in ascending order.
  template <class Visitor>
  TERSUM_BODY void visit_levels(Visitor const& visit) const
  {
    std::uint32_t total;
    std::uint32_t ties = sum_below(args.selection.scratch->ties, 1, total);
    ties += scan(own_ties(), total);
    run const mine = own_run();
    for (std::uint64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
      std::uint32_t tie_level, tie_cost;
      std::uint32_t level =
        level_above(args.selection.rule, energy(chunk), threshold, tie_level, tie_cost);
      ties += tie_cost;
      if (tie_cost > 0 && ties <= remaining) { level = tie_level; }
      visit(chunk, level);
    }
  }

  //! Takes the next number of a level. Each level is compared with: an array that is indexed would not lie in registers.
  [[nodiscard]] TERSUM_BODY static std::uint32_t take_number(std::uint32_t (&next)[levels],
                                                             std::uint32_t level)
  {
    std::uint32_t number = 0;
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      if (level == l + 1) { number = next[l]++; }
    }
    return number;
  }

  TERSUM_BODY void add_ties()
  {
    find_digits(digit_passes);
    std::uint32_t const total = sum(own_ties());
    if (ctx.thread_rank() == 0) {
      ctx.store(args.selection.scratch->ties + ctx.block_rank(), total);
    }
    ctx.sync_block();
  }

  TERSUM_BODY void add_counts()
  {
    find_digits(digit_passes);
    std::uint32_t counts[levels] = {};
    visit_levels(
      [&](std::uint64_t, std::uint32_t level) { static_cast<void>(take_number(counts, level)); });
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      std::uint32_t const total = sum(counts[l]);
      if (ctx.thread_rank() == 0) {
        ctx.store(&args.selection.scratch->counts[ctx.block_rank()][l], total);
      }
    }
    ctx.sync_block();
  }

  TERSUM_BODY void place_chunks()
  {
    find_digits(digit_passes);
    std::uint32_t next[levels] = {};
    visit_levels(
      [&](std::uint64_t, std::uint32_t level) { static_cast<void>(take_number(next, level)); });
    TERSUM_UNROLL
    for (unsigned l = 0; l < levels; ++l) {
      std::uint32_t total, total_of_block;
      std::uint32_t const below =
        sum_below(&args.selection.scratch->counts[0][l], max_levels, total);
      next[l] = below + scan(next[l], total_of_block);
      if (ctx.thread_rank() == 0) { shared[l] = total; }
    }
    visit_levels([&](std::uint64_t chunk, std::uint32_t level) {
      std::uint32_t const number = take_number(next, level);
      ctx.store(args.selection.places + chunk, level == 0 ? 0u : number << place_shift | level);
    });
    if (ctx.block_rank() == 0 && ctx.thread_rank() == 0) {
      selection_header found{};
      found.threshold = threshold;
      found.remaining = remaining;
      found.count[0]  = static_cast<std::uint32_t>(args.chunks);
      TERSUM_UNROLL
      for (unsigned l = 0; l < levels; ++l) {
        found.count[l + 1] = shared[l];
        found.count[0] -= shared[l];
      }
      place_levels(args.selection.rule, found);
      args.selection.scratch->header = found;
    }
  }
};

//! @brief Applies the rule of a selection: the phases first .. last-1. The histograms must be zero before phase 0.
//!
//! `select_threads<Context>` threads and `select_shared` bytes of shared memory a block; all phases in one launch need one block.
//! Reads the norms about eight times, writes four bytes a chunk.
template <unsigned Levels, class Args, class Context>
TERSUM_BODY void select_phases_of(Context const& ctx, Args const& args, int first, int last)
{
  block_selection<Levels, Args, Context> mine{ctx, args};
  auto const included = [&](int phase) { return first <= phase && phase < last; };
  for (int pass = 0; pass < digit_passes; ++pass) {
    if (included(pass)) { mine.add_histogram(pass); }
  }
  if (included(3)) { mine.add_ties(); }
  if (included(4)) { mine.add_counts(); }
  if (included(5)) { mine.place_chunks(); }
}

}  // namespace tersum::inline v0::detail
