// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Factors of all matrices of a plan: orthonormal columns, the warm start, and means from factors. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/block_product.hpp>
#include <tersum/lowrank/detail/factor_stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The threads of a block that have the factors of a matrix in hand.
template <unsigned Threads, class Context>
struct block_hand : context_arithmetic<Context> {
  using product = typename Context::product;

  Context const& ctx;

  TERSUM_BODY explicit block_hand(Context const& context) : ctx(context) {}

  [[nodiscard]] TERSUM_BODY unsigned rank() const { return ctx.thread_rank(); }
  [[nodiscard]] static constexpr unsigned size() { return Threads; }
  TERSUM_BODY void sync() const { ctx.sync_block(); }

  [[nodiscard]] TERSUM_BODY double square(float const* column, std::uint64_t length) const
  {
    return warp_dot(ctx, column, column, length);
  }
  TERSUM_BODY void sync_lanes() const { ctx.sync_warp(); }
};

//! @brief Stores up to eight values of one row of a matrix: floats, or means that are rounded to finite elements.
template <class Element, class Context>
TERSUM_BODY void store_values(Context const& ctx, Element* to, int count, float const (&v)[8])
{
  if (count == 8 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    auto* const vector = reinterpret_cast<word4*>(to);
    if constexpr (sizeof(Element) == 4) {
      ctx.store_global(
        vector,
        {Context::bits(v[0]), Context::bits(v[1]), Context::bits(v[2]), Context::bits(v[3])});
      ctx.store_global(
        vector + 1,
        {Context::bits(v[4]), Context::bits(v[5]), Context::bits(v[6]), Context::bits(v[7])});
    } else {
      ctx.store_global(vector,
                       {Context::template pack_finite<Element>(v[0], v[1]),
                        Context::template pack_finite<Element>(v[2], v[3]),
                        Context::template pack_finite<Element>(v[4], v[5]),
                        Context::template pack_finite<Element>(v[6], v[7])});
    }
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      if (j < count) { ctx.store(to + j, Context::template finite_element<Element>(v[j])); }
    }
  }
}

//! Blocks that share the columns of 64 rows.
inline constexpr int rebuild_splits = 4;

//! @brief Writes the mean P Q^T in place of the gradient, and the rest to the residual. `rebuild_splits` blocks share 64 rows.
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
      thread_values<8>::load(ctx, right + k * product_stride + place, q);
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
    if (feeds_back<Codec> && keeps) {
      float rest[4][8];
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) { load_values<false>(ctx, args, first_of[i], count[i], rest[i]); }
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        float kept[8];
        load_some(ctx, args.residual + first_of[i], count[i], kept);
        TERSUM_UNROLL
        for (int j = 0; j < 8; ++j) {
          float const mean = Context::value(Context::template finite_element<Element>(sum[i][j]));
          rest[i][j] =
            rest_of_matrix(context_arithmetic<Context>{}, args, rest[i][j], mean, kept[j]);
        }
        store_values(ctx, args.residual + first_of[i], count[i], rest[i]);
      }
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      store_values(ctx, args.gradient + first_of[i], count[i], sum[i]);
    }
    ctx.sync_block();
  }
}

//! @brief Makes the factor orthonormal that the products start from: the reduced P of a paired exchange, otherwise the warm
//! start. A block of `factor_threads` has one matrix.
template <class Codec, class Element, class Context>
TERSUM_BODY void orthonormalize_factor(Context const& ctx,
                                       exchange_args<Codec, Element> const& args)
{
  using factor               = block_factor<Context, Codec::rank>;
  matrix_record const& m     = args.table[ctx.block_rank()];
  int const turn             = 1 - turn_of(args);
  std::uint64_t const length = m.length(turn);
  std::uint64_t const count  = m.rank * length;
  float* const values        = args.parts.factor[0] + m.slot[turn];
  factor mine{ctx, values, length, static_cast<int>(m.rank)};
  bool bad = false;
  for (std::uint64_t i = ctx.thread_rank(); i < count; i += factor_threads) {
    std::uint64_t const at = m.slot[turn] + i;
    float const v          = agrees<Codec> ? Context::value(ctx.load(args.parts.wire[0] + at))
                                           : ctx.load(args.parts.warm + at);
    bad                    = bad || (agrees<Codec> && !is_finite(v));
    ctx.store(values + i, v);
  }
  bool const poisoned = mine.largest(factor_threads, [&](int) { return bad ? 1.0f : 0.0f; }) > 0.0f;
  if (ctx.thread_rank() == 0) {
    args.parts.poisoned[ctx.block_rank()] = poisoned ? 1 : 0;
    if (poisoned) { raise_flag(args); }
  }
  if (!agrees<Codec> && ctx.block_rank() + 1 == args.chunks) {
    // The factors of the shorter of two turns are padded with zeros.
    std::uint64_t const used = args.parts.end.slot[1 - turn];
    for (std::uint64_t i = used + ctx.thread_rank(); i < args.parts.elements; i += factor_threads) {
      args.parts.wire[1][i] = typename Codec::quantizer_type::element{};
    }
  }
  if (poisoned) {
    for (std::uint64_t i = ctx.thread_rank(); i < count; i += factor_threads) {
      ctx.store(values + i, 0.0f);
    }
  } else {
    Codec::low_rank_type::orthogonalizer_type::orthogonalize(mine);
  }
}

//! @brief Converts the reduced factor to float, divides it by the number of ranks, and sets the flag if it is not finite. A
//! block of `product_threads` has 64 elements of all columns.
template <class Codec, class Element, class Context>
TERSUM_BODY void receive_factor(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  int const turn             = turn_of(args);
  std::uint64_t const number = ctx.block_rank();
  if (number >= args.parts.end.first_block[turn]) { return; }
  auto const first           = [turn](matrix_record const& m) { return m.first_block[turn]; };
  std::uint64_t const matrix = find_matrix(args, number, first);
  matrix_record const& m     = args.table[matrix];
  std::uint64_t const length = m.length(turn);
  std::uint64_t const row    = (number - first(m)) * 64 + ctx.thread_rank() % 64;
  float const share          = Context::divide_moderate(1.0f, static_cast<float>(args.world));
  if (row >= length) { return; }
  bool bad = false;
  for (unsigned k = ctx.thread_rank() / 64; k < m.rank; k += product_threads / 64) {
    std::uint64_t const at = m.slot[turn] + k * length + row;
    float const sum        = Context::value(ctx.load(args.parts.wire[1] + at));
    bad                    = bad || !is_finite(sum);
    ctx.store(args.parts.factor[1] + at, Context::multiply(sum, share));
  }
  if (bad) { poison(args, matrix); }
}

}  // namespace tersum::inline v0::detail
