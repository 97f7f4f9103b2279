// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Matrices in the units of a diagonal metric: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/block_matrix.hpp>
#include <tersum/lowrank/detail/factor_args.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Blocks that share the columns of 64 rows.
inline constexpr int rebuild_splits = 4;

//! @brief Finds the largest scale of each matrix, where `largest` was cleared. `rebuild_splits` blocks share 64 rows, which are
//! neighbours in memory.
template <class Codec, class Element, class Context>
TERSUM_BODY void find_largest_scale(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const number = ctx.block_rank() / rebuild_splits;
  auto const first           = [](matrix_record const& m) { return m.first_rows; };
  std::uint64_t const matrix = find_matrix(args, number, first);
  matrix_record const& m     = args.table[matrix];
  std::uint64_t const row    = (number - first(m)) * 64;
  std::uint64_t const count  = minimum<std::uint64_t>(64, m.rows - row) * m.columns;
  float const* const scales  = args.metric.scales + m.offset + row * m.columns;
  std::uint64_t const step   = rebuild_splits * product_threads * 8;
  std::uint64_t const place  = ctx.block_rank() % rebuild_splits * product_threads;
  std::uint32_t largest      = 0;
  for (std::uint64_t i = (place + ctx.thread_rank()) * 8; i < count; i += step) {
    float v[8];
    load_some(ctx, scales + i, count_of_eight(count, i), v);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { largest = maximum(largest, Context::bits(v[j]) & 0x7fffffffu); }
  }
  largest = ctx.warp_max(largest);
  if (ctx.thread_rank() % 32 == 0) { ctx.atomic_max(args.parts.scales + matrix, largest); }
}

//! @brief What the scales of a matrix are raised to; without a metric none are.
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY float least_scale_of(Context const& ctx,
                                               exchange_args<Codec, Element> const& args,
                                               matrix_record const& m)
{
  if constexpr (in_metric<Codec>) {
    float const largest = Context::from_bits(ctx.load(args.parts.scales + (&m - args.table)));
    return least_scale(context_arithmetic<Context>{}, args.codec.metric, largest);
  }
  return 1.0f;
}

//! @brief Divides up to eight values of one row of a matrix by their scales.
template <class Codec, class Element, class Context>
TERSUM_BODY void divide_by_scales(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  float least,
                                  std::uint64_t at,
                                  int count,
                                  float (&v)[8])
{
  if constexpr (in_metric<Codec>) {
    float scales[8];
    load_some(ctx, args.metric.scales + at, count, scales);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = Context::divide(v[j], raised_scale(scales[j], least)); }
  }
}

//! What a block knows of the scales of its matrix while the mean is rebuilt.
struct scales_of_matrix {
  float least;  //!< What they are raised to.
  float steps;  //!< Exchanges before this one.
  bool unknown;
  float first;  //!< Where nothing is known: what they all become.
};

//! @brief All threads of the block call it. Factors other than that of the turn are orthonormal, so that the squared norm of the mean
//! is that of the factor of the turn.
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY scales_of_matrix load_scales_of(Context const& ctx,
                                                          exchange_args<Codec, Element> const& args,
                                                          matrix_record const& m,
                                                          int turn)
{
  float const largest = Context::from_bits(ctx.load(args.parts.scales + (&m - args.table)));
  scales_of_matrix own{};
  own.least   = least_scale(context_arithmetic<Context>{}, args.codec.metric, largest);
  own.unknown = is_unknown_scale(largest);
  if constexpr (keeps_metric<Codec>) {
    own.steps = static_cast<float>(args.header->step);
    if (own.unknown) {
      std::uint64_t const length = m.length(turn);
      float const* column        = args.parts.factor[1] + m.slot[turn];
      double square              = 0;
      for (std::uint32_t k = 0; k < m.rank; ++k, column += length) {
        square = square + warp_dot(ctx, column, column, length);
      }
      own.first = Context::square_root(
        Context::divide(static_cast<float>(square), static_cast<float>(m.rows * m.columns)));
    }
  }
  return own;
}

//! @brief Multiplies up to eight values of one row of a matrix by their scales, and with `keeps` keeps what these become.
template <class Codec, class Element, class Context>
TERSUM_BODY void leave_scales(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              scales_of_matrix const& own,
                              [[maybe_unused]] bool keeps,
                              std::uint64_t at,
                              int count,
                              float (&v)[8])
{
  float scales[8];
  load_some(ctx, args.metric.scales + at, count, scales);
  TERSUM_UNROLL
  for (int j = 0; j < 8; ++j) {
    float const scale = raised_scale(scales[j], own.least);
    if constexpr (keeps_metric<Codec>) {
      context_arithmetic<Context> const math{};
      float next = own.first;
      if (!own.unknown) { next = args.codec.metric.update(math, v[j], scale, own.steps); }
      scales[j] = kept_scale<float>(next, scales[j], 0);
    }
    v[j] = Context::multiply(v[j], scale);
  }
  if constexpr (keeps_metric<Codec>) {
    if (keeps) { store_values(ctx, args.metric.scales + at, count, scales); }
  }
}

}  // namespace tersum::inline v0::detail
