// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of a factored metric on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/line_items.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::prepare_metric, cpu_work<Codec, Element> const& work)
{
  each_batch<prepare_lines<Codec, Element>>(work.plan, work.args, on_threads(work, 256));
  return {};
}

//! Adds the squares of what the gradient has of a row, where that is not all of it.
template <class Element>
void add_part_of_row(line_piece const& piece,
                     Element const* gradient,
                     std::uint64_t row,
                     std::uint64_t column,
                     unsigned count,
                     double (&lanes)[8],
                     double* columns)
{
  for (unsigned j = 0; j < count; ++j) {
    std::uint64_t const at = row * piece.columns + column + j;
    if (at < piece.skip || at >= piece.skip + piece.size) { continue; }
    double const value = static_cast<double>(to_float(gradient[piece.offset + at - piece.skip]));
    lanes[j % 8]       = add_product(value, value, lanes[j % 8]);
    columns[j]         = add_product(value, value, columns[j]);
  }
}

//! Adds the squares of a tile, by rows, in one read of the mean.
template <class Codec, class Element>
void add_tile(cpu_work<Codec, Element> const& work, line_piece const& piece, std::uint64_t tile)
{
  Element const* const gradient = work.args.gradient;
  double* const sums            = work.args.metric.sums;
  line_tile const own           = line_tile::of(piece, tile);
  std::uint64_t const whole_rows =
    (piece.skip + piece.size) / piece.columns;  // but for the first, where some is skipped
  double lanes[line_tile::rows][8];
  for (std::uint64_t column = own.begin_column; column < own.end_column;
       column += line_tile::columns) {
    auto const count =
      static_cast<unsigned>(minimum(std::uint64_t{line_tile::columns}, own.end_column - column));
    bool const begins                  = column == own.begin_column;
    bool const ends                    = column + count == own.end_column;
    double columns[line_tile::columns] = {};
    for (std::uint64_t first = own.begin_row; first < own.end_row; first += line_tile::rows) {
      std::uint64_t const rows = minimum(std::uint64_t{line_tile::rows}, own.end_row - first);
      if (begins) { std::fill_n(&lanes[0][0], 8 * rows, 0.0); }
      auto const add_part = [&](std::uint64_t row) {
        add_part_of_row(piece, gradient, row, column, count, lanes[row - first], columns);
      };
      std::uint64_t const from = first + (first == 0 && piece.skip > 0 ? 1 : 0);
      std::uint64_t const to   = minimum(first + rows, maximum(whole_rows, from));
      if (from > first) { add_part(first); }
      if (to > from) {
        add_tile_squares(work.instructions,
                         gradient + piece.offset + (from * piece.columns + column - piece.skip),
                         piece.columns,
                         to - from,
                         count,
                         lanes + (from - first),
                         columns);
      }
      if (to < first + rows) { add_part(to); }
      for (std::uint64_t r = 0; ends && r < rows; ++r) {
        double(&sum)[8] = lanes[r];
        for (int half_of = 4; half_of > 0; half_of /= 2) {
          for (int k = 0; k < half_of; ++k) { sum[k] = sum[k] + sum[k + half_of]; }
        }
        sums[own.sums_of_rows + (first - own.begin_row + r) * piece.row_parts()] = sum[0];
      }
    }
    std::copy_n(columns, count, sums + own.sums_of_columns + (column - own.begin_column));
  }
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::follow, cpu_work<Codec, Element> const& work)
{
  auto const is_narrow = [](line_piece const& piece) { return piece.columns < 8; };
  auto const run       = on_threads(work, 256);
  each_batch<add_line_squares<Codec, Element>>(work.plan, work.args, run, is_narrow);
  work.plan.for_each_piece([&](line_piece const& piece) {
    if (is_narrow(piece)) { return; }
    parallel_for(
      work.threads, piece.tiles(), [&](std::uint64_t tile) { add_tile(work, piece, tile); });
  });
  follow_means(work.plan, work.args, run);
  return {};
}

}  // namespace tersum::inline v0::detail
