// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One block of the selection of chunks: its chunks, its shared memory, barriers of all blocks, and the search for the threshold, a
//! radix selection by histograms; nothing is sorted and nothing leaves the device.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/block/block_scan.hpp>
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

//! @brief What one block of a selection has, and what it does with other blocks.
//!
//! A block has neighbouring chunks, and takes one a thread at a time. Their norms are read once: a thread keeps the value of its first
//! chunk, and those of further ones where their places will be. Where there are several blocks they wait for each other four or five times, so
//! all of them must be resident, on a context with a barrier of the grid.
//! @tparam Args    Has `chunks`, how many there are, and `selection`, of `selection_args` or what derives from it; and there are
//!                 selection_energy(ctx, args, chunk), an integer that ascends with the chunk's energy, and
//!                 selection_turn(args), by which ties take turns.
template <class Args, class Context>
struct selection_block {
  static constexpr unsigned threads = select_threads<Context>;
  //! Whether chunks are listed by their levels.
  static constexpr bool orders = requires(Args const& a) { a.selection.order; };
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
    return block_scan<threads>::exclusive_sum(ctx, value, total, scan_room);
  }

  //! The least key whose steps are not all paid, and what is left of the capacity for those that equal it.
  TERSUM_BODY void find_threshold()
  {
    for (unsigned i = 4 * ctx.thread_rank(); i < digit_count; i += 4 * threads) {
      ctx.store(reinterpret_cast<word4*>(shared + i), word4{});
    }
    if (ctx.thread_rank() == 0) { shown[3] = 0; }
    if (!alone()) {
      auto* const all      = reinterpret_cast<word4*>(args.selection.scratch->histogram[0]);
      unsigned const first = ctx.block_rank() * threads + ctx.thread_rank();
      for (unsigned i = first; i < digit_passes * digit_count / 4;
           i += ctx.grid_blocks() * threads) {
        ctx.store_global(all + i, word4{});
      }
    }
    // Norms are read while others still clear their parts of the histograms.
    std::uint32_t const cleared = arrive();
    search(cleared);
    remaining = paid_ties(args.selection.rule, threshold, remaining);
  }

  //! Finds the digits, where `remaining` is the capacity.
  TERSUM_BODY void search([[maybe_unused]] std::uint32_t cleared)
  {
    TERSUM_NO_UNROLL
    for (int pass = 0; pass < digit_passes; ++pass) {
      count_digits(pass);
      if (pass == 0) {
        wait(cleared);
      } else {
        ctx.sync_block();
      }
      if (!alone()) {
        add_to_all(pass);
        wait(arrive());
      }
      find_digit(pass);
      if (pass == 1 && shown[2] != 0) { break; }
    }
  }

  //! Counts the digits of a pass, of the steps that the passes before leave open, by their costs. Chunks without energy need not
  //! be counted: nobody asks what keys of 0 cost.
  TERSUM_BODY void count_digits(int pass)
  {
    selection_rule const& rule = args.selection.rule;
    run const mine             = own_run();
    bool fine                  = false;
    for (std::uint32_t at = ctx.thread_rank(); at < mine.count; at += threads) {
      std::uint32_t const value = pass == 0 ? read_value(mine, at) : kept_value(mine, at);
      if (value == 0) { continue; }
      fine = fine || ((value - 1) & (coarseness() - 1)) != 0;
      TERSUM_UNROLL_TWICE
      for (std::uint32_t step = 0; step < rule.steps; ++step) {
        std::uint32_t const key = selection_key(rule, step, value);
        if (begins_with(key, threshold, pass)) {
          ctx.atomic_add(shared + digit_of(key, pass), rule.cost[step]);
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
  [[nodiscard]] TERSUM_BODY std::uint32_t* fine_blocks() const
  {
    return args.selection.scratch->histogram[2] + digit_count - 1;
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
  TERSUM_BODY void add_to_all(int pass) const
  {
    std::uint32_t* const all = args.selection.scratch->histogram[pass];
    if (pass == 0 && ctx.thread_rank() == 0 && shown[3] != 0) { ctx.atomic_add(fine_blocks(), 1u); }
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
  TERSUM_BODY void find_digit(int pass)
  {
    unsigned const t               = ctx.thread_rank();
    std::uint32_t* const histogram = alone() ? shared : args.selection.scratch->histogram[pass];
    std::uint32_t const top        = pass == 2 ? 1023u : 2047u;
    // Each thread has some digits next to each other, the first thread those at the top; it loads up to four of them at once.
    constexpr unsigned each = digit_count / threads, at_once = minimum(each, 4u);
    struct alignas(4 * at_once) digits {
      std::uint32_t cost[at_once];
    };
    std::uint32_t costs[each] = {};
    std::uint32_t own         = 0;
    std::uint32_t const fine  = pass != 1 ? 1u : alone() ? shown[3] : ctx.load(fine_blocks());
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
};

}  // namespace tersum::inline v0::detail
