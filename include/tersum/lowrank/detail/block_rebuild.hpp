// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Writes the matrices that factors make in place of the gradient. Kernel body.

#pragma once

#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/lowrank/detail/block_matrix.hpp>
#include <tersum/lowrank/detail/block_product.hpp>
#include <tersum/lowrank/detail/factor_args.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Blocks that share the columns of 64 rows.
inline constexpr int rebuild_splits = 4;

//! @brief Writes the mean P Q^T in place of the gradient, and what it leaves out to the residual. `rebuild_splits` blocks share 64
//! rows.
template <class Codec, class Element, class Context>
TERSUM_BODY void rebuild_matrices(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  constexpr int columns        = Codec::rank;
  int const turn               = turn_of(args);
  std::uint64_t const number   = ctx.block_rank() / rebuild_splits;
  auto const first             = [](matrix_record const& m) { return m.first_rows; };
  std::uint64_t const matrix   = find_matrix(args, number, first);
  matrix_record const& m       = args.table[matrix];
  bool const poisoned          = args.parts.poisoned[matrix] != 0;
  bool const keeps             = !step_is_poisoned(args);
  bool const sends_rows        = m.sends_rows(turn);
  float const* const sent      = args.parts.factor[1] + m.slot[turn];
  float const* const other     = args.parts.factor[0] + m.slot[1 - turn];
  int const rank               = static_cast<int>(m.rank);
  std::uint64_t const begin    = (number - first(m)) * 64;
  float* const left            = static_cast<float*>(ctx.shared());
  float* const right           = left + columns * product_stride;
  int const place              = static_cast<int>(ctx.thread_rank()) % 8 * 8;
  int const group              = static_cast<int>(ctx.thread_rank()) / 8;
  std::uint64_t const one_tile = ctx.block_rank() % rebuild_splits * 64;

  load_factor<columns>(ctx, sends_rows ? sent : other, m.rows, rank, begin, left);
  for (std::uint64_t at = one_tile; at < m.columns; at += 64 * rebuild_splits) {
    load_factor<columns>(ctx, sends_rows ? other : sent, m.columns, rank, at, right);
    ctx.sync_block();
    std::uint64_t const column = at + static_cast<unsigned>(place);
    float sum[4][8]            = {};
    for (int k = 0; k < rank; ++k) {
      float q[8];
      load_eight(ctx, right + k * product_stride + place, q);
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        float const p = left[k * product_stride + group + 16 * i];
        TERSUM_UNROLL
        for (int j = 0; j < 8; ++j) { sum[i][j] = Context::fma(p, q[j], sum[i][j]); }
      }
    }
    std::uint64_t first_of[4];
    int count[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      std::uint64_t const row = begin + static_cast<unsigned>(group + 16 * i);
      first_of[i]             = m.offset + row * m.columns + column;
      count[i]                = row < m.rows ? count_of_eight(m.columns, column) : 0;
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        sum[i][j] = poisoned ? Context::from_bits(0x7fc00000u) : Context::add(sum[i][j], 0.0f);
      }
    }
    if constexpr (feeds_back<Codec>) {
      if (keeps) {
        float rest[4][8];
        TERSUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          load_values<false>(ctx, args, first_of[i], count[i], rest[i]);
        }
        TERSUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          [[maybe_unused]] float kept[8];
          if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
            load_some(ctx, args.residual + first_of[i], count[i], kept);
          }
          TERSUM_UNROLL
          for (int j = 0; j < 8; ++j) {
            float const mean = Context::value(Context::template finite_element<Element>(sum[i][j]));
            [[maybe_unused]] float const value = rest[i][j];
            rest[i][j]                         = Context::subtract(value, mean);
            if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
              context_arithmetic<Context> const math{};
              float const before = weighed<Codec>(math, weight_of_kept(args), kept[j]);
              rest[i][j]         = args.codec.feedback.after(math, value, rest[i][j], before);
            }
            rest[i][j] = kept_of_matrix(rest[i][j]);
          }
          store_values(ctx, args.residual + first_of[i], count[i], rest[i]);
        }
      }
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      store_values(ctx, args.gradient + first_of[i], count[i], sum[i]);
    }
    ctx.sync_block();
  }
}

}  // namespace tersum::inline v0::detail
