// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks: kernel bodies. A radix selection by histograms; nothing is sorted and nothing leaves the device.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/config.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr unsigned select_threads =
  static_cast<unsigned>(tuning_of<Context>.cuda.select_threads);
//! Shared memory of a block: one histogram, the room of `block_scan`, and what all threads must know.
inline constexpr int select_shared = (digit_count + 32 + 4) * 4;

//! @brief Blocks of a selection. Fewer make the same choice, if all of them are resident together.
[[nodiscard]] constexpr std::uint64_t select_blocks(std::uint64_t chunks,
                                                    cuda_tuning const& tuning) noexcept
{
  if (chunks <= tuning.select_alone) { return chunks == 0 ? 0 : 1; }
  std::uint64_t const chunks_a_block =
    tuning.select_chunks * static_cast<std::uint64_t>(tuning.select_threads);
  return minimum<std::uint64_t>((chunks + chunks_a_block - 1) / chunks_a_block,
                                selection_scratch::max_blocks);
}

//! @brief One block's part of a selection.
//!
//! A block has neighbouring chunks, and takes one a thread at a time. Their norms are read once: a thread keeps the value of its first
//! chunk, and those of further ones where their places will be. Where there are several blocks they wait for each other four or five times, so
//! all of them must be resident, on a context with a barrier of the grid.
//! @tparam Levels  Of the chunker, besides none.
//! @tparam Args    Has `chunks`, how many there are, and `selection`, of `selection_args` or what derives from it; and there are
//!                 selection_energy(ctx, args, chunk), an integer that ascends with the chunk's energy, and
//!                 selection_turn(args), by which ties take turns.
template <unsigned Levels, class Args, class Context>
struct block_selection {
  static constexpr unsigned levels  = Levels;
  static constexpr unsigned threads = select_threads<Context>;
  static constexpr unsigned warps   = threads / 32;
  //! Whether chunks are listed by their levels.
  static constexpr bool orders = requires(Args const& a) { a.selection.order; };
  //! Whether steps have costs of both ways. Both are searched for the steps that they pay for.
  static constexpr bool both_ways = requires(Args const& a) { a.selection.mean; };
  static_assert(digit_count % threads == 0 && threads % 32 == 0 && threads <= 1024,
                "tersum: cuda_tuning.select_threads must be a power of two from 32 to 1024");

  Context const& ctx;
  Args const& args;
  std::uint32_t* shared     = static_cast<std::uint32_t*>(ctx.shared());
  std::uint32_t* scan_room  = shared + digit_count;
  std::uint32_t* shown      = shared + digit_count + 32;
  std::uint32_t threshold   = 0;                             //!< The digits that are known.
  std::uint32_t remaining   = args.selection.rule.capacity;  //!< In the end: ties that are paid.
  std::uint32_t first_value = 0;                             //!< Of this thread's first chunk.

  //! The chunks of this block: those of later blocks have larger numbers.
  struct run {
    std::uint32_t begin, count;
  };

  [[nodiscard]] TERSUM_BODY run own_run() const
  {
    auto const chunks         = static_cast<std::uint32_t>(args.chunks);  // below 2^29
    std::uint32_t const all   = ctx.grid_blocks() * threads;
    std::uint32_t const each  = (chunks + all - 1) / all * threads;
    std::uint32_t const begin = minimum(ctx.block_rank() * each, chunks);
    return {begin, minimum(each, chunks - begin)};
  }

  [[nodiscard]] TERSUM_BODY bool alone() const { return ctx.grid_blocks() == 1; }

  //! @name A barrier of all blocks, in two parts
  //! What is stored before the first is seen behind the second, by every block. Either is a barrier of the block, too.
  //! @{
  [[nodiscard]] TERSUM_BODY std::uint32_t arrive() const
  {
    if constexpr (grid_context<Context>) {
      if (!alone()) { return ctx.arrive_grid(); }
    }
    ctx.sync_block();
    return 0;
  }

  TERSUM_BODY void wait([[maybe_unused]] std::uint32_t arrival) const
  {
    if constexpr (grid_context<Context>) {
      if (!alone()) { return ctx.wait_grid(arrival); }
    }
    ctx.sync_block();
  }
  //! @}

  //! Reads the norm of a chunk of this block, and keeps its value.
  TERSUM_BODY std::uint32_t read_value(run const& mine, std::uint32_t at)
  {
    std::uint32_t const value = selection_value(
      args.selection.rule, selection_energy(ctx, args, std::uint64_t{mine.begin} + at));
    if (at < threads) {
      first_value = value;
    } else {
      ctx.store(args.selection.places + mine.begin + at, value);
    }
    return value;
  }

  [[nodiscard]] TERSUM_BODY std::uint32_t kept_value(run const& mine, std::uint32_t at) const
  {
    return at < threads ? first_value : ctx.load(args.selection.places + mine.begin + at);
  }

  //! The sum of the values of the threads with lower numbers; `total` becomes that of all threads of the block.
  [[nodiscard]] TERSUM_BODY std::uint32_t scan(std::uint32_t value, std::uint32_t& total) const
  {
    return ctx.template block_scan<threads>(value, total, scan_room);
  }

  //! @name Of one way, or of the other where steps have costs of both
  //! @{
  [[nodiscard]] TERSUM_BODY std::uint32_t cost_of(std::uint32_t step,
                                                  [[maybe_unused]] bool mean) const
  {
    if constexpr (both_ways) {
      if (mean) { return args.selection.mean.cost[step]; }
    }
    return args.selection.rule.cost[step];
  }
  //! The histogram of all blocks.
  [[nodiscard]] TERSUM_BODY std::uint32_t* histogram_of(int pass, [[maybe_unused]] bool mean) const
  {
    if constexpr (both_ways) {
      if (mean) {
        return static_cast<two_way_scratch*>(args.selection.scratch)->mean_histogram[pass];
      }
    }
    return args.selection.scratch->histogram[pass];
  }
  //! @}

  //! The least key whose steps are not all paid, and what is left of the capacity for those that equal it.
  TERSUM_BODY void find_threshold()
  {
    for (unsigned i = 4 * ctx.thread_rank(); i < digit_count; i += 4 * threads) {
      ctx.store(reinterpret_cast<word4*>(shared + i), word4{});
    }
    if (ctx.thread_rank() == 0) { shown[3] = 0; }
    if (!alone()) {
      auto* const all      = reinterpret_cast<word4*>(histogram_of(0, false));
      unsigned const first = ctx.block_rank() * threads + ctx.thread_rank();
      for (unsigned i = first; i < digit_passes * digit_count / 4;
           i += ctx.grid_blocks() * threads) {
        ctx.store_global(all + i, word4{});
        if constexpr (both_ways) {
          ctx.store_global(reinterpret_cast<word4*>(histogram_of(0, true)) + i, word4{});
        }
      }
    }
    // Norms are read while others still clear their parts of the histograms.
    std::uint32_t const cleared = arrive();
    if constexpr (!both_ways) {
      search(cleared, false);
      remaining = paid_ties(args.selection.rule, threshold, remaining);
    } else {
      paid_steps paid{};
      TERSUM_NO_UNROLL
      for (int way = 0; way < 2; ++way) {
        bool const mean = way != 0;
        if (mean) { remaining = args.selection.mean.capacity; }
        threshold = 0;
        search(cleared, mean);
        std::uint32_t const cost = cost_of(tie_step(args.selection.rule, threshold), mean);
        paid_steps const here{threshold, remaining / maximum(cost, 1u)};
        paid = mean ? paid_by_both(paid, here) : here;
      }
      threshold = paid.threshold;
      remaining = paid.ties;
    }
  }

  //! Finds the digits, where `remaining` is the capacity.
  TERSUM_BODY void search([[maybe_unused]] std::uint32_t cleared, [[maybe_unused]] bool mean)
  {
    TERSUM_NO_UNROLL
    for (int pass = 0; pass < digit_passes; ++pass) {
      count_digits(pass, mean);
      if (pass == 0 && !mean) {
        wait(cleared);
      } else {
        ctx.sync_block();
      }
      if (!alone()) {
        add_to_all(pass, mean);
        wait(arrive());
      }
      find_digit(pass, mean);
      if (pass == 1 && shown[2] != 0) { break; }
    }
  }

  //! Counts the digits of a pass, of the steps that the passes before leave open, by their costs. Chunks without energy need not
  //! be counted: nobody asks what keys of 0 cost.
  TERSUM_BODY void count_digits(int pass, bool mean)
  {
    selection_rule const& rule = args.selection.rule;
    run const mine             = own_run();
    bool fine                  = false;
    for (std::uint32_t at = ctx.thread_rank(); at < mine.count; at += threads) {
      std::uint32_t const value = !mean && pass == 0 ? read_value(mine, at) : kept_value(mine, at);
      if (value == 0) { continue; }
      fine = fine || ((value - 1) & (coarseness() - 1)) != 0;
      TERSUM_UNROLL_TWICE
      for (std::uint32_t step = 0; step < rule.steps; ++step) {
        std::uint32_t const key = selection_key(rule, step, value);
        if (begins_with(key, threshold, pass)) {
          ctx.atomic_add(shared + digit_of(key, pass), cost_of(step, mean));
        }
      }
    }
    if (pass == 0 && fine) { ctx.atomic_max(shown + 3, 1u); }
  }

  //! @name Keys that need no third digit
  //! Of norms of 16 bits all values but for 1 are multiples of a power of two, unless tensors have weights. Then the end of a key
  //! tells its step, and nothing else. So if one step alone can have keys that begin with two digits, all of these are equal.
  //! @{
  [[nodiscard]] TERSUM_BODY std::uint32_t coarseness() const
  {
    return args.selection.rule.exponent & (0u - args.selection.rule.exponent);
  }

  //! Where all blocks count whether a value is none: the third histogram has half as many digits.
  [[nodiscard]] TERSUM_BODY std::uint32_t* fine_blocks(bool mean) const
  {
    return histogram_of(2, mean) + digit_count - 1;
  }

  //! Whether at most one step has keys that begin with two digits; `end` becomes its third.
  [[nodiscard]] TERSUM_BODY bool is_one_step(std::uint32_t begin, std::uint32_t& end) const
  {
    selection_rule const& rule = args.selection.rule;
    if (coarseness() < 1024u) { return false; }
    std::uint32_t steps = 0;
    TERSUM_NO_UNROLL
    for (std::uint32_t step = 0; step < rule.steps; ++step) {
      std::uint32_t const last = rule.offset[step] & 1023u;
      if (((begin + last - rule.offset[step]) & (coarseness() - 1)) == 0) {
        ++steps;
        end = last;
      }
    }
    return steps <= 1;
  }
  //! @}

  //! Adds this block's histogram to that of all blocks, and clears it.
  TERSUM_BODY void add_to_all(int pass, bool mean) const
  {
    std::uint32_t* const all = histogram_of(pass, mean);
    if (pass == 0 && ctx.thread_rank() == 0 && shown[3] != 0) {
      ctx.atomic_add(fine_blocks(mean), 1u);
    }
    for (unsigned i = 4 * ctx.thread_rank(); i < digit_count; i += 4 * threads) {
      auto* const own   = reinterpret_cast<word4*>(shared + i);
      word4 const costs = ctx.load(own);
      if ((costs.x | costs.y | costs.z | costs.w) == 0) { continue; }
      ctx.store(own, word4{});
      if (costs.x != 0) { ctx.atomic_add(all + i, costs.x); }
      if (costs.y != 0) { ctx.atomic_add(all + i + 1, costs.y); }
      if (costs.z != 0) { ctx.atomic_add(all + i + 2, costs.z); }
      if (costs.w != 0) { ctx.atomic_add(all + i + 3, costs.w); }
    }
  }

  //! Finds the digit of a pass from its histogram, and the third with the second if it can. Every block finds the same.
  TERSUM_BODY void find_digit(int pass, bool mean)
  {
    unsigned const t               = ctx.thread_rank();
    std::uint32_t* const histogram = alone() ? shared : histogram_of(pass, mean);
    std::uint32_t const top        = pass == 2 ? 1023u : 2047u;
    // Each thread has some digits next to each other, the first thread those at the top; it loads up to four of them at once.
    constexpr unsigned each = digit_count / threads, at_once = minimum(each, 4u);
    struct alignas(4 * at_once) digits {
      std::uint32_t cost[at_once];
    };
    std::uint32_t costs[each] = {};
    std::uint32_t own         = 0;
    std::uint32_t const fine  = pass != 1 ? 1u : alone() ? shown[3] : ctx.load(fine_blocks(mean));
    if (each * t <= top) {
      TERSUM_UNROLL
      for (unsigned i = 0; i < each; i += at_once) {
        std::uint32_t const lowest = top + 1u - each * t - i - at_once;
        auto* const from           = reinterpret_cast<digits*>(histogram + lowest);
        digits const some          = ctx.load(from);
        if (alone()) { ctx.store(from, digits{}); }
        TERSUM_UNROLL
        for (unsigned k = 0; k < at_once; ++k) {
          costs[i + k] = some.cost[at_once - 1 - k];
          own += costs[i + k];
        }
      }
    }
    std::uint32_t total;
    std::uint32_t before = scan(own, total);
    // One thread has the digit: the first one whose costs exceed what is left, or else digit 0.
    bool const lowest = each * t + each == top + 1u;
    if (before <= remaining && (lowest || before + own > remaining)) {
      std::uint32_t digit = top - each * t, left = remaining - before, cost = 0;
      bool found = false;
      TERSUM_UNROLL
      for (unsigned i = 0; i < each; ++i) {
        if (found) { continue; }
        cost  = costs[i];
        found = cost > left || digit == 0;
        if (!found) {
          left -= cost;
          --digit;
        }
      }
      std::uint32_t begin = threshold | digit << digit_shift(pass), end = 0;
      bool const is_last = fine == 0 && is_one_step(begin, end);
      if (is_last) {
        if (cost > left) {
          begin |= end;
        } else if (end != 0) {
          left -= cost;  // all are paid
        }
      }
      shown[0] = begin;
      shown[1] = left;
      shown[2] = is_last ? 1u : 0u;
    }
    ctx.sync_block();
    threshold = shown[0];
    remaining = shown[1];
  }

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
    if constexpr (orders) {
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
  block_selection<Levels, Args, Context> mine{ctx, args};
  mine.find_threshold();
  mine.count_levels();
  mine.add_blocks();
  mine.find_places();
}

//! @brief Only finds the threshold, and writes it to the header.
template <class Args, class Context>
TERSUM_BODY void find_threshold_of(Context const& ctx, Args const& args)
{
  block_selection<1, Args, Context> mine{ctx, args};
  mine.find_threshold();
  if (ctx.block_rank() == 0 && ctx.thread_rank() == 0) {
    ctx.store(&args.selection.scratch->header.threshold, mine.threshold);
  }
}

}  // namespace tersum::inline v0::detail
