// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of a matrix and a factor on the CPU, 64 rows or columns at a time.

#pragma once

#include <tersum/lowrank/detail/cpu_low_rank_kernels.hpp>
#include <tersum/lowrank/detail/matrix_product.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief tile[t][lane], of 64 lanes: a block of a matrix whose lanes are the rows or columns that a product takes at once.
template <class Wire, class Load>
void load_tile(instruction_set set,
               Load const& load,
               matrix_product<Wire> const& product,
               std::uint64_t begin,
               int lanes,
               std::uint64_t at,
               int terms,
               float* tile)
{
  constexpr int block = low_rank_block;
  alignas(64) float turned[block * block];
  bool const turns = product.of_rows;
  float* const to  = turns ? turned : tile;
  int const count  = turns ? terms : lanes;
  std::uint64_t from =
    product.offset + (turns ? begin * product.columns + at : at * product.columns + begin);
  if (lanes < block || (turns && terms < block)) {
    std::fill_n(to, block * (turns ? block : terms), 0.0f);
  }
  for (int row = 0; row < (turns ? lanes : terms); ++row, from += product.columns) {
    load(from, count, to + row * block);
  }
  if (turns) { transpose_block(set, turned, tile); }
}

//! @brief 64 rows or columns of a product, from `begin` on; the sums of its slices are added one after the other.
//! @param load  load(i, count, to): elements of what the matrix is read from, from i on.
template <class Wire, class Load>
void multiply_part(instruction_set set,
                   Load const& load,
                   matrix_product<Wire> const& product,
                   std::uint64_t begin)
{
  constexpr int block        = low_rank_block;
  auto const& slices         = product.slices;
  int const rank             = static_cast<int>(product.rank);
  std::uint64_t const length = product.length;
  int const lanes            = static_cast<int>(std::min<std::uint64_t>(block, length - begin));
  alignas(64) float tile[block * block];
  alignas(64) float sums[max_rank * block];
  alignas(64) float earlier[max_rank * block];
  std::fill_n(sums, rank * block, 0.0f);
  std::fill_n(earlier, rank * block, 0.0f);
  auto const end_slice = [&] {
    for (int i = 0; i < rank * block; ++i) { earlier[i] += sums[i]; }
  };
  auto const step = static_cast<unsigned>(slices.step());
  for (std::uint64_t at = 0; at < slices.terms; at += step) {
    if (at > 0 && at % slices.each() == 0) {
      end_slice();
      std::fill_n(sums, rank * block, 0.0f);
    }
    int const terms = static_cast<int>(std::min<std::uint64_t>(step, slices.terms - at));
    load_tile(set, load, product, begin, lanes, at, terms, tile);
    multiply_block(set, product.from + at, slices.terms, 1u, rank, terms, tile, sums);
  }
  end_slice();
  for (int k = 0; k < rank; ++k) {
    Wire* const column = product.to + static_cast<unsigned>(k) * length + begin;
    for (int i = 0; i < lanes; ++i) {
      column[i] = from_float<Wire>(sent_of_product<Wire>(earlier[k * block + i], product.largest));
    }
  }
}

}  // namespace tersum::inline v0::detail
