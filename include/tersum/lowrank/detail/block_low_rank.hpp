// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange of factors does besides products: it fills tables, makes columns orthonormal, receives factors, and
//! keeps the warm start. Kernel bodies.

#pragma once

#include <tersum/config.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/block_matrix.hpp>
#include <tersum/lowrank/detail/factor_args.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Fills the columns of the warm start that are zero with random numbers, the same on all ranks. Paired, all get unit
//! length. A warp takes a column at a time.
template <class Codec, class Element, class Context>
TERSUM_BODY void refresh_warm(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              matrix_record const& m,
                              int turn,
                              std::uint64_t turns)
{
  std::uint64_t const length = m.length(turn);
  unsigned const lane        = ctx.thread_rank() % 32;
  for (unsigned k = ctx.thread_rank() / 32; k < m.rank; k += factor_threads / 32) {
    std::uint64_t const slot = m.slot[turn] + k * length;
    float* const values      = args.parts.warm + slot;
    double square            = warp_dot(ctx, values, values, length);
    if (!(square > zero_below)) {
      for (std::uint64_t i = lane; i < length; i += 32) {
        context_arithmetic<Context> const math{};
        float const v =
          random_start<typename Context::product>(math, args.header->seed, slot + i, turns);
        ctx.store(values + i, v);
      }
      ctx.sync_warp();
      square = warp_dot(ctx, values, values, length);
    }
    if (agrees<Codec> && square > zero_below) {
      double const factor = 1.0 / ::sqrt(square);
      ctx.sync_warp();
      for (std::uint64_t i = lane; i < length; i += 32) {
        ctx.store(values + i,
                  static_cast<float>(factor * static_cast<double>(ctx.load(values + i))));
      }
    }
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
    float v;
    if constexpr (agrees<Codec>) {
      v   = Context::value(ctx.load(args.parts.wire[0] + m.slot[turn] + i));
      bad = bad || !is_finite(v);
    } else {
      v = ctx.load(args.parts.warm + m.slot[turn] + i);
    }
    ctx.store(values + i, v);
  }
  bool const poisoned = mine.largest(factor_threads, [&](int) { return bad ? 1.0f : 0.0f; }) > 0.0f;
  if (ctx.thread_rank() == 0) {
    args.parts.poisoned[ctx.block_rank()] = poisoned ? 1 : 0;
    if (poisoned) { raise_flag(args); }
  }
  if constexpr (!agrees<Codec>) {
    // The factors of the shorter of two turns are padded with zeros.
    if (ctx.block_rank() + 1 == args.chunks) {
      std::uint64_t const used = m.slot[1 - turn] + m.rank * m.length(1 - turn);
      for (std::uint64_t i = used + ctx.thread_rank(); i < args.parts.elements;
           i += factor_threads) {
        args.parts.wire[1][i] = typename Codec::wire_element{};
      }
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
  if (number >= args.parts.blocks[turn]) { return; }
  auto const first           = [turn](matrix_record const& m) { return m.first_block[turn]; };
  std::uint64_t const matrix = find_matrix(args, number, first);
  matrix_record const& m     = args.table[matrix];
  std::uint64_t const length = m.length(turn);
  std::uint64_t const row    = (number - first(m)) * 64 + ctx.thread_rank() % 64;
  float const share          = Context::divide(1.0f, static_cast<float>(args.world));
  if (row >= length) { return; }
  bool bad = false;
  for (unsigned k = ctx.thread_rank() / 64; k < m.rank; k += product_threads / 64) {
    std::uint64_t const at = m.slot[turn] + k * length + row;
    float const sum        = Context::value(ctx.load(args.parts.wire[1] + at));
    bad                    = bad || !is_finite(sum);
    ctx.store(args.parts.factor[1] + at, Context::multiply(sum, share));
  }
  if (bad) {
    // Threads of several warps and blocks may store the same at once, which only strong stores may do.
    *static_cast<std::uint32_t volatile*>(args.parts.poisoned + matrix) = 1;
    raise_flag(args);
  }
}

//! @brief Makes what arrived the next warm start, unless a value was not finite. A block of `factor_threads` has one matrix.
template <class Codec, class Element, class Context>
TERSUM_BODY void keep_warm(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  if (step_is_poisoned(args)) { return; }
  matrix_record& m          = args.table[ctx.block_rank()];
  std::uint64_t const turns = m.turns;
  int const turn            = agrees<Codec> ? 1 : static_cast<int>(turns % 2);
  std::uint64_t const begin = m.slot[turn];
  std::uint64_t const count = m.rank * m.length(turn);
  for (std::uint64_t i = ctx.thread_rank(); i < count; i += factor_threads) {
    ctx.store(args.parts.warm + begin + i, ctx.load(args.parts.factor[1] + begin + i));
  }
  ctx.sync_block();
  if (ctx.thread_rank() == 0) { m.turns = turns + 1; }
  refresh_warm(ctx, args, m, turn, turns + 1);
}

}  // namespace tersum::inline v0::detail
