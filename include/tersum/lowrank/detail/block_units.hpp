// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The units of rows and columns of matrices under a factored metric, from the lines that the state keeps: a kernel body, and the
//! same on the CPU.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/detail/line_items.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/low_rank_args.hpp>
#include <tersum/metric/detail/line_piece.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The units of the lines of one matrix: those of rows are their root mean squares, those of columns these over the whole's, both
//! raised to a part of the largest of their kind. Where nothing is known of rows, of columns or of the whole, all are 1.
//! @tparam Arithmetic  Of a group.
template <class Arithmetic, class Metric>
struct matrix_units {
  Metric const& metric;
  float whole;
  bool known;
  float least_row;
  float least_column;

  //! @param rows, columns, of_whole  The largest of each.
  TERSUM_INLINE matrix_units(Metric const& of_codec, float rows, float columns, float of_whole)
    : metric(of_codec), whole(of_whole), known(false), least_row(1.0f), least_column(1.0f)
  {
    if (!(whole > 0)) { return; }
    float const share = metric.share(Arithmetic{}, columns, whole);
    known             = is_finite(share) && !is_unknown_scale(share) && !is_unknown_scale(rows);
    least_column      = least_scale(Arithmetic{}, metric, share);
    least_row         = least_scale(Arithmetic{}, metric, rows);
  }

  //! The unit of a row or of a column.
  [[nodiscard]] TERSUM_INLINE float of(float line, bool of_rows) const
  {
    if (!known) { return 1.0f; }
    float const own = of_rows ? line : metric.share(Arithmetic{}, line, whole);
    return raised_scale(own, of_rows ? least_row : least_column);
  }
};

//! @brief The largest of so many values that are not negative. All threads of a block of `factor_threads` call it.
template <class Context>
[[nodiscard]] TERSUM_BODY float largest_of_block(Context const& ctx,
                                                 float const* from,
                                                 std::uint64_t count)
{
  auto* const words     = static_cast<std::uint32_t*>(ctx.shared());
  std::uint32_t largest = 0;
  for (std::uint64_t i = ctx.thread_rank(); i < count; i += factor_threads) {
    largest = maximum(largest, Context::bits(ctx.load(from + i)) & 0x7fffffffu);
  }
  largest = ctx.warp_max(largest);
  if (ctx.thread_rank() % 32 == 0) { words[ctx.thread_rank() / 32] = largest; }
  ctx.sync_block();
  for (unsigned warp = 0; warp < factor_threads / 32; ++warp) {
    largest = maximum(largest, words[warp]);
  }
  ctx.sync_block();
  return Context::from_bits(largest);
}

//! @brief Makes the units of up to 24 matrices, of which each has a block.
struct prepare_units : kernel_of_threads<factor_threads, &cuda_tuning::factor_blocks> {
  piece_batch batch;

  template <class Codec>
  static constexpr int shared = factor_threads / 32 * static_cast<int>(sizeof(std::uint32_t));

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    using math                 = context_arithmetic<Context>;
    std::uint64_t block        = ctx.block_rank();
    line_piece const& piece    = batch.find(block);
    matrix_record const& m     = args.matrices[piece.first_chunk];
    float const* const rows    = args.metric.lines + piece.first_line;
    float const* const columns = rows + m.rows;
    float const largest_row    = largest_of_block(ctx, rows, m.rows);
    float const largest_column = largest_of_block(ctx, columns, m.columns);
    matrix_units<math, decltype(args.codec.metric)> const units{
      args.codec.metric, largest_row, largest_column, ctx.load(columns + m.columns)};
    TERSUM_UNROLL
    for (int turn = 0; turn < 2; ++turn) {
      bool const of_rows       = m.sends_rows(turn);
      std::uint64_t const to   = 64 * m.first_block[turn];
      float const* const lines = of_rows ? rows : columns;
      for (std::uint64_t i = ctx.thread_rank(); i < m.length(turn); i += factor_threads) {
        float const unit = units.of(ctx.load(lines + i), of_rows);
        ctx.store(args.metric.units[turn] + to + i, unit);
        ctx.store(args.metric.inverses[turn] + to + i, Context::divide(1.0f, unit));
      }
    }
  }
};

//! Matrices as items, of which each is one.
template <class Codec, class Element>
struct matrix_items : line_item<Codec, Element> {
  [[nodiscard]] static std::uint64_t items(line_piece const&) { return 1; }
};

}  // namespace tersum::inline v0::detail
