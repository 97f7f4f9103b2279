// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of all matrices of a bucket with their factors. Kernel bodies.

#pragma once

#include <tersum/config.hpp>
#include <tersum/lowrank/detail/block_matrix.hpp>
#include <tersum/lowrank/detail/block_product.hpp>
#include <tersum/lowrank/detail/low_rank_args.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Computes the factors of a turn for all matrices from those of the other turn, and writes them to the wire. A block
//! has 64 elements of the columns of one matrix.
template <class Codec, class Element, class Context>
TERSUM_BODY void multiply_matrices(Context const& ctx,
                                   exchange_args<Codec, Element> const& args,
                                   int turn,
                                   float const* from)
{
  std::uint64_t const number = ctx.block_rank();
  if (number >= args.blocks[turn]) { return; }
  auto const first       = [turn](matrix_record const& m) { return m.first_block[turn]; };
  matrix_record const& m = args.matrices[find_matrix(args, number, first)];
  float const* const by  = from + m.slot[1 - turn];
  auto const load        = [&args](Context const& on, std::uint64_t at, int count, float(&v)[8]) {
    load_values(on, args, at, count, v);
  };
  product_shape const shape{
    m.offset, m.rows, m.columns, m.length(turn), m.rank, m.sends_rows(turn)};
  block_product<Codec::rank, decltype(load), Context>{ctx, load, shape, (number - first(m)) * 64}
    .run(by, args.wire[turn] + m.slot[turn], args.largest);
}

}  // namespace tersum::inline v0::detail
