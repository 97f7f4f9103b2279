// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of the squares of rows and columns in one read of what was decoded: kernel body.

#pragma once

#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/detail/line_items.hpp>
#include <tersum/metric/detail/line_piece.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A block of `threads` threads adds up the squares of a `line_tile`. It brings so many `rows` of `columns` at a time to shared
//! memory. There eight threads have a row, which is a lane each, and every thread has a column.
struct tile_squares {
  static constexpr unsigned threads = 256;
  static constexpr unsigned rows    = 32;
  static constexpr unsigned columns = line_tile::columns;
  static constexpr unsigned apart   = columns + 8;  // four rows of eight lanes have all banks
  static constexpr int shared       = rows * apart * sizeof(float);
  static_assert(line_tile::rows == 2 * rows && threads == columns && threads == 8 * rows);

  //! Tensors of fewer columns would leave most threads without one.
  static constexpr std::uint64_t least_columns = 64;

  //! Blocks of a tensor; of one of few columns a thread has an item.
  [[nodiscard]] TERSUM_INLINE static std::uint64_t blocks(line_piece const& piece,
                                                          std::uint64_t items)
  {
    return piece.columns < least_columns ? (items + threads - 1) / threads : piece.tiles();
  }

  //! Brings what there is of the tensor from (row, column) on to shared memory; zeros for what is not.
  template <class Context, class Element>
  TERSUM_BODY static void load(Context const& ctx,
                               line_piece const& piece,
                               Element const* first,
                               bool in_fours,
                               std::uint64_t row,
                               std::uint64_t end_row,
                               std::uint64_t column,
                               std::uint64_t end_column,
                               float* to)
  {
    std::uint64_t const stop = piece.skip + piece.size;
    unsigned const t         = ctx.thread_rank();
    unsigned const count     = in_fours ? 4 : 1;
    unsigned const across    = columns / count;
    unsigned const own       = t % across * count;
    if (column + own >= (end_column + 7) / 8 * 8) { return; }
    for (unsigned r = t / across; r < rows; r += threads / across) {
      float* const place     = to + r * apart + own;
      std::uint64_t const at = (row + r) * piece.columns + column + own;
      bool const exists      = row + r < end_row && column + own < end_column;
      if (in_fours) {
        float v[4] = {};
        if (exists && at >= piece.skip && at + 4 <= stop) {
          load_four(ctx, first + (at - piece.skip), v);
        } else if (exists) {
          TERSUM_UNROLL
          for (unsigned j = 0; j < 4; ++j) {
            if (at + j >= piece.skip && at + j < stop) {
              v[j] = Context::value(ctx.load(first + (at + j - piece.skip)));
            }
          }
        }
        store_four(ctx, place, v);
      } else {
        float v = 0.0f;
        if (exists && at >= piece.skip && at < stop) {
          v = Context::value(ctx.load(first + (at - piece.skip)));
        }
        ctx.store(place, v);
      }
    }
  }

  //! All threads of the block call it.
  template <class Codec, class Element, class Context>
  TERSUM_BODY static void add(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              line_piece const& piece,
                              std::uint64_t number)
  {
    float* const tile          = static_cast<float*>(ctx.shared());
    unsigned const t           = ctx.thread_rank();
    line_tile const own        = line_tile::of(piece, number);
    Element const* const first = args.gradient + piece.offset;
    // Coordinate 0 of the first row would be at a multiple of four elements, and so are all multiples of four.
    bool const in_fours =
      piece.columns % 4 == 0 &&
      reinterpret_cast<std::uintptr_t>(first - piece.skip % 4) % (4 * sizeof(Element)) == 0;
    double upper = 0;  // lanes of rows of the first and the second half of a tile of 64
    double lower = 0;
    for (std::uint64_t column = own.begin_column; column < own.end_column; column += columns) {
      double of_column = 0;
      bool const ends  = column + columns >= own.end_column;
      auto const width = static_cast<unsigned>(ends ? own.end_column - column : columns);
      bool second      = false;
      for (std::uint64_t row = own.begin_row; row < own.end_row; row += rows) {
        load(ctx, piece, first, in_fours, row, own.end_row, column, own.end_column, tile);
        ctx.sync_block();
        if (t < width) {
          for (unsigned r = 0; r < rows; ++r) {
            double const v = ctx.load(tile + r * apart + t);
            of_column      = Context::fma(v, v, of_column);
          }
        }
        double lane = column == own.begin_column ? 0.0 : second ? lower : upper;
        for (unsigned j = t % 8; j < width; j += 8) {
          double const v = ctx.load(tile + t / 8 * apart + j);
          lane           = Context::fma(v, v, lane);
        }
        if (ends) {
          double const sum = warp_total<8>(ctx, lane);
          if (t % 8 == 0 && row + t / 8 < own.end_row) {
            ctx.store(args.metric.sums + own.sums_of_rows +
                        (row - own.begin_row + t / 8) * piece.row_parts(),
                      sum);
          }
        } else if (second) {
          lower = lane;
        } else {
          upper = lane;
        }
        second = !second;
        ctx.sync_block();
      }
      if (t < width) {
        ctx.store(args.metric.sums + own.sums_of_columns + (column - own.begin_column) + t,
                  of_column);
      }
    }
  }
};

//! @brief A block has a tile, or, of a tensor of few columns, items of `add_line_squares`.
struct line_squares_kernel : kernel_of_threads<static_cast<int>(tile_squares::threads)> {
  piece_batch batch;

  template <class Codec>
  static constexpr int shared = tile_squares::shared;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    using items             = add_line_squares<Codec, Element>;
    std::uint64_t block     = ctx.block_rank();
    line_piece const& piece = batch.find(block);
    if (piece.columns < tile_squares::least_columns) {
      std::uint64_t const item = block * tile_squares::threads + ctx.thread_rank();
      if (item < items::items(piece)) { items::of_piece(ctx, args, piece, item); }
    } else {
      tile_squares::add(ctx, args, piece, block);
    }
  }
};

//! Blocks of the kernel, as items are numbered.
template <class Codec, class Element>
struct line_squares : line_item<Codec, Element> {
  [[nodiscard]] static std::uint64_t items(line_piece const& piece)
  {
    return tile_squares::blocks(piece, add_line_squares<Codec, Element>::items(piece));
  }
};

}  // namespace tersum::inline v0::detail
