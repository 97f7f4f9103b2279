// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One block of the selection of chunks: its chunks, its shared memory, and barriers of all blocks.

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
    return ctx.template block_scan<threads>(value, total, scan_room);
  }
};

}  // namespace tersum::inline v0::detail
