// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of all matrices of a bucket with their factors. Kernel bodies.

#pragma once

#include <tersum/config.hpp>
#include <tersum/lowrank/detail/block_matrix.hpp>
#include <tersum/lowrank/detail/block_product.hpp>
#include <tersum/lowrank/detail/factor_args.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Computes the factors of a turn for all matrices from those of the other turn, and writes them to the wire, or the
//! sums of slices to the workspace. A block has 64 elements of the columns of one matrix, and all slices or one of them.
template <class Codec, class Element, class Context>
TERSUM_BODY void multiply_matrices(Context const& ctx,
                                   exchange_args<Codec, Element> const& args,
                                   int turn,
                                   float const* from)
{
  std::uint64_t const number = ctx.block_rank();
  if (number >= args.parts.products[turn]) { return; }
  auto const first       = [turn](matrix_record const& m) { return m.first_product[turn]; };
  matrix_record const& m = args.table[find_matrix(args, number, first)];
  float const* const by  = from + m.slot[1 - turn];
  matrix_product<typename Codec::wire_element> const shape{
    by, m.offset, m.rows, m.columns, m.length(turn), m.rank, m.sends_rows(turn)};
  std::uint64_t block         = number - first(m);
  product_slices const slices = m.slices(turn);
  std::uint64_t begin = 0, end = slices.terms;
  auto* to    = args.parts.wire[turn] + m.slot[turn];
  float* sums = args.parts.factor[agrees<Codec> ? turn : 1] + m.slot[turn];
  if (m.is_divided(turn)) {
    // There are few enough for 32 bits.
    auto const blocks = static_cast<std::uint32_t>(m.blocks(turn));
    auto const slice  = static_cast<std::uint32_t>(block) / blocks;
    block             = static_cast<std::uint32_t>(block) % blocks;
    begin             = std::uint64_t{slice} << slices.log;
    end               = minimum(end, begin + slices.each());
    sums = args.parts.partials + m.first_partial[turn] + slice * (m.rank * shape.length);
    to   = nullptr;
  }
  auto const load = [&](Context const& on, std::uint64_t at, int count, float(&v)[8]) {
    load_values<true>(on, args, at, count, v);
  };
  block_product<Codec::rank, decltype(load), Context>{ctx, load, shape, block * 64}.run(
    slices, begin, end, by, sums, to, args.parts.largest);
}

//! Blocks that add up slices for 64 elements of all columns of a factor: each has two columns.
template <class Codec>
inline constexpr unsigned adders_of_block = (Codec::rank + 1) / 2;

//! @brief Adds the sums of the slices of divided matrices, and writes the factors of a turn to the wire.
template <class Codec, class Element, class Context>
TERSUM_BODY void add_matrices(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              int turn)
{
  std::uint64_t const number = ctx.block_rank() / adders_of_block<Codec>;
  if (number >= args.parts.blocks[turn]) { return; }
  auto const first       = [turn](matrix_record const& m) { return m.first_block[turn]; };
  matrix_record const& m = args.table[find_matrix(args, number, first)];
  if (!m.is_divided(turn)) { return; }
  add_part(ctx,
           product_of(args, m, turn, nullptr),
           number - first(m),
           ctx.block_rank() % adders_of_block<Codec>);
}

}  // namespace tersum::inline v0::detail
