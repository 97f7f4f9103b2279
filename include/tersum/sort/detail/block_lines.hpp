// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The largest magnitudes of rows and columns, their order, and matrices in that order: kernel bodies.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/sort/detail/block_line_units.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/sort/detail/line_units.hpp>
#include <tersum/sort/line_key.hpp>
#include <tersum/sort/line_record.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief How the threads of a block lie on rows: `side` of them, a power of two, next to each other.
struct thread_grid {
  std::uint64_t side, row, column, depth;

  [[nodiscard]] TERSUM_INLINE static thread_grid of(unsigned thread, std::uint64_t columns)
  {
    std::uint64_t side = 1;
    while (side < columns && side < line_record::block_threads) { side *= 2; }
    return {side, thread / side, thread % side, line_record::block_threads / side};
  }
  //! body(row, column) for the coordinates of this thread.
  template <class Body>
  TERSUM_BODY void each(std::uint64_t rows, std::uint64_t columns, Body const& body) const
  {
    for (std::uint64_t r = row; r < rows; r += depth) {
      for (std::uint64_t c = column; c < columns; c += side) { body(r, c); }
    }
  }
};

//! @brief Writes the records of some tensors, passed by value so that no host memory has to outlive the call.
struct write_lines_kernel {
  static constexpr int capacity = 32;
  static constexpr int threads  = 32;
  static constexpr int shared   = 0;

  line_record records[capacity];
  line_record* to;
  unsigned count;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    if (ctx.thread_rank() < count) { to[ctx.thread_rank()] = records[ctx.thread_rank()]; }
  }
};

//! @brief Raises the peaks of the rows and columns of one tile a block. They were set to zero.
template <class Element>
struct find_peaks_kernel : line_kernel<Element> {
  // Of at most as many rows as two columns leave.
  static constexpr std::uint64_t most_rows =
    line_record::tile_depth * line_record::block_threads / 2;
  static constexpr int shared =
    static_cast<int>((most_rows + line_record::block_threads) * sizeof(std::uint32_t));

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& args = this->args;
    line_record const& record =
      record_of<&line_record::first_tile>(args.records, args.totals.tensors, ctx.block_rank());
    std::uint64_t const tile    = ctx.block_rank() - record.first_tile;
    std::uint64_t const across  = record.tiles_across();
    std::uint64_t const top     = tile / across * record.tile_rows();
    std::uint64_t const left    = tile % across * record.tile_columns();
    std::uint64_t const rows    = minimum(record.tile_rows(), record.rows - top);
    std::uint64_t const columns = minimum(record.tile_columns(), record.columns - left);
    auto* const row_peaks       = static_cast<std::uint32_t*>(ctx.shared());
    auto* const column_peaks    = row_peaks + most_rows;
    unsigned const thread       = ctx.thread_rank();
    for (std::uint64_t i = thread; i < rows; i += ctx.block_threads()) {
      ctx.store(row_peaks + i, 0u);
    }
    ctx.store(column_peaks + thread, 0u);
    ctx.sync_block();
    std::uint64_t const side   = record.tile_columns();
    std::uint64_t const column = thread % side;
    std::uint64_t const depth  = line_record::block_threads / side;
    auto const* const from = args.gradient + record.offset + top * record.columns + left + column;
    line_access const access{ctx, args, record};
    std::uint32_t peak = 0;
    // All threads of a warp go through all rows of the tile, since they meet in warp_max.
    for (std::uint64_t i = 0; i < line_record::tile_depth; ++i) {
      std::uint64_t const row = thread / side + i * depth;
      std::uint32_t bits      = 0;
      if (row < rows && column < columns) {
        bits = access.magnitude(ctx, from + row * record.columns);
      }
      peak = maximum(peak, bits);
      if (side >= 32) {
        std::uint32_t const most = ctx.warp_max(bits);
        if (thread % 32 == 0 && most != 0) { ctx.atomic_max(row_peaks + row, most); }
      } else if (bits != 0) {
        ctx.atomic_max(row_peaks + row, bits);
      }
    }
    if (peak != 0) { ctx.atomic_max(column_peaks + column, peak); }
    ctx.sync_block();
    std::uint32_t* const peaks = args.lines + record.first_line;
    for (std::uint64_t i = thread; i < rows; i += ctx.block_threads()) {
      std::uint32_t const most = ctx.load(row_peaks + i);
      if (most != 0) { ctx.atomic_max(peaks + top + i, most); }
    }
    if (thread < columns) {
      std::uint32_t const most = ctx.load(column_peaks + thread);
      if (most != 0) { ctx.atomic_max(peaks + record.rows + left + thread, most); }
    }
  }
};

//! An item of `executor::each`: the key of a line.
template <class Element>
struct make_key {
  line_args<Element> args;

  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::size_t line) const
  {
    using measured = std::conditional_t<line_units<Element>::scaled, float, Element>;
    memory.store(args.keys + line, line_key<measured>(memory.load(args.lines + line)));
  }
};

//! The place of a key in descending order.
[[nodiscard]] TERSUM_INLINE unsigned bucket_of(std::uint8_t key) { return key_values - 1u - key; }

//! @brief Counts the keys of one group a block.
template <class Element>
struct count_keys_kernel : line_kernel<Element> {
  static constexpr int shared = key_values * sizeof(std::uint32_t);

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& args         = this->args;
    std::uint64_t const mine = ctx.block_rank();
    line_group const group   = line_group::of(
      record_of<&line_record::first_group>(args.records, args.totals.tensors, mine), mine);
    auto* const counts    = static_cast<std::uint32_t*>(ctx.shared());
    unsigned const thread = ctx.thread_rank();
    ctx.store(counts + thread, 0u);
    ctx.sync_block();
    for (std::uint32_t i = thread; i < group.count; i += ctx.block_threads()) {
      ctx.atomic_add(counts + bucket_of(ctx.load(args.keys + group.first + i)), 1u);
    }
    ctx.sync_block();
    ctx.store(args.counts + mine * key_values + thread, ctx.load(counts + thread));
  }
};

//! @brief Turns the counts of each group into the place of its first line of each key. One block for the rows of a matrix, and one
//! for its columns.
template <class Element>
struct add_counts_kernel : line_kernel<Element> {
  static constexpr int shared = key_values * sizeof(std::uint32_t);

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& args            = this->args;
    line_record const& record   = args.records[ctx.block_rank() / 2];
    bool const of_rows          = ctx.block_rank() % 2 == 0;
    std::uint64_t const groups  = record.groups(of_rows);
    std::uint64_t const first   = record.first_group + (of_rows ? 0 : record.groups(true));
    unsigned const bucket       = ctx.thread_rank();
    std::uint32_t* const counts = args.counts + first * key_values + bucket;
    auto* const totals          = static_cast<std::uint32_t*>(ctx.shared());
    std::uint32_t total         = 0;
    for (std::uint64_t group = 0; group < groups; ++group) {
      total += ctx.load(counts + group * key_values);
    }
    ctx.store(totals + bucket, total);
    ctx.sync_block();
    std::uint32_t place = 0;
    for (unsigned before = 0; before < bucket; ++before) { place += ctx.load(totals + before); }
    for (std::uint64_t group = 0; group < groups; ++group) {
      std::uint32_t const own = ctx.load(counts + group * key_values);
      ctx.store(counts + group * key_values, place);
      place += own;
    }
  }
};

//! @brief Writes the lines of one group to their places, equal keys in the order of the lines. One group a block.
template <class Element>
struct place_lines_kernel : line_kernel<Element> {
  static constexpr unsigned warps = line_record::block_threads / 32;
  static constexpr unsigned part  = line_record::group_lines / warps;
  static constexpr int shared     = warps * key_values * sizeof(std::uint32_t);

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& args         = this->args;
    std::uint64_t const mine = ctx.block_rank();
    line_record const& record =
      record_of<&line_record::first_group>(args.records, args.totals.tensors, mine);
    line_group const group = line_group::of(record, mine);
    unsigned const thread  = ctx.thread_rank();
    unsigned const lane    = thread % 32;
    auto* const places     = static_cast<std::uint32_t*>(ctx.shared());
    auto* const own        = places + thread / 32 * key_values;
    for (unsigned i = lane; i < key_values; i += 32) { ctx.store(own + i, 0u); }
    ctx.sync_warp();
    std::uint32_t const first = thread / 32 * part;
    for (std::uint32_t i = first + lane; i < minimum(first + part, group.count); i += 32) {
      ctx.atomic_add(own + bucket_of(ctx.load(args.keys + group.first + i)), 1u);
    }
    ctx.sync_block();
    // The first place of each warp's lines of each key.
    std::uint32_t place = ctx.load(args.counts + mine * key_values + thread);
    for (unsigned warp = 0; warp < warps; ++warp) {
      std::uint32_t* const at   = places + warp * key_values + thread;
      std::uint32_t const count = ctx.load(at);
      ctx.store(at, place);
      place += count;
    }
    ctx.sync_block();
    std::uint32_t* const to = args.lines + (group.first - group.begin);
    for (std::uint32_t i = first; i < first + part; i += 32) {
      bool const exists = i + lane < group.count;
      std::uint32_t const bucket =
        exists ? bucket_of(ctx.load(args.keys + group.first + i + lane)) : key_values;
      std::uint32_t before = 0, alike = 0;
      for (std::uint32_t other = 0; other < 32; ++other) {
        bool const same = ctx.shuffle(bucket, other) == bucket;
        alike += same ? 1 : 0;
        before += same && other < lane ? 1 : 0;
      }
      std::uint32_t const begin = exists ? ctx.load(own + bucket) : 0;
      ctx.sync_warp();
      if (exists) {
        ctx.store(to + begin + before, group.begin + i + lane);
        if (before + 1 == alike) { ctx.store(own + bucket, begin + alike); }
      }
      ctx.sync_warp();
    }
  }
};

//! @brief Copies rows of matrices to their places. Rows that fit pass through shared memory, so that global memory is read and written
//! in its order.
//! @tparam Back  From their places to the gradient.
template <int Strip, class Element, bool Back>
struct move_rows_kernel : line_kernel<Element> {
  static constexpr int shared = static_cast<int>(line_record::block_coordinates * sizeof(float));

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& args          = this->args;
    row_block const block     = row_block::of(args, ctx.block_rank());
    line_record const& record = block.record;
    auto* const gradient      = args.gradient + record.offset;
    float* const sorted       = args.sorted + record.offset;
    line_access access{ctx, args, record};
    if (record.sorted == 0) {
      if constexpr (Back) { access.first_of_block(ctx, args, sorted + block.first, block.count); }
      for (std::uint64_t i = block.first + ctx.thread_rank(); i < block.first + block.count;
           i += ctx.block_threads()) {
        if constexpr (Back) {
          access.write(ctx, gradient + i, ctx.load(sorted + i));
        } else {
          ctx.store(sorted + i, access.read(ctx, gradient + i));
        }
      }
      return;
    }
    std::uint64_t const columns       = record.columns;
    std::uint32_t const* const rows   = args.lines + record.first_line;
    std::uint32_t const* const across = rows + record.rows;
    auto const grid                   = thread_grid::of(ctx.thread_rank(), columns);
    auto const place                  = [&](std::uint64_t row, std::uint64_t column) {
      return sorted + sorted_place<Strip>(block.first + row, column, record.rows, columns);
    };
    auto const source = [&](std::uint64_t row, std::uint64_t column) {
      return gradient + ctx.load(rows + block.first + row) * columns + column;
    };
    if (columns > line_record::block_coordinates) {
      grid.each(block.count, columns, [&](std::uint64_t row, std::uint64_t column) {
        std::uint32_t const from = ctx.load(across + column);
        if constexpr (Back) {
          float const mean = ctx.load(place(row, column));
          access.write(ctx, source(row, from), mean, block.first + row, from);
        } else {
          ctx.store(place(row, column), access.read(ctx, source(row, from)));
        }
      });
      return;
    }
    auto* const kept = static_cast<float*>(ctx.shared());
    grid.each(block.count, columns, [&](std::uint64_t row, std::uint64_t column) {
      if constexpr (Back) {
        ctx.store(kept + row * columns + ctx.load(across + column), ctx.load(place(row, column)));
      } else {
        ctx.store(kept + row * columns + column, access.read(ctx, source(row, column)));
      }
    });
    ctx.sync_block();
    grid.each(block.count, columns, [&](std::uint64_t row, std::uint64_t column) {
      if constexpr (Back) {
        access.write(ctx,
                     source(row, column),
                     ctx.load(kept + row * columns + column),
                     block.first + row,
                     column);
      } else {
        ctx.store(place(row, column), ctx.load(kept + row * columns + ctx.load(across + column)));
      }
    });
  }
};

}  // namespace tersum::inline v0::detail
