// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of a matrix and a factor on the CPU, 64 rows or columns at a time.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/detail/cpu_low_rank_kernels.hpp>
#include <tersum/lowrank/detail/product_slices.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Some of the 64 rows or columns of a matrix that a product takes at once.
template <class Load>
struct cpu_product {
  static constexpr int block = low_rank_block;

  instruction_set set;
  Load const& load;  //!< load(i, count, to): elements of the matrix from i on, row after row.
  std::uint64_t rows;
  std::uint64_t columns;
  int rank;
  bool of_rows;         //!< The product has the rows of the matrix: M Q rather than M^T P.
  std::uint64_t begin;  //!< The first of the 64 rows or columns.

  //! @param slices  Those of the shape; their sums are added one after the other.
  //! @param from  The factor that is multiplied, column after column.
  //! @param to    The product, column after column; what is not finite becomes infinity.
  //! @param largest  Of 16-bit elements: finite products end there, at either sign.
  template <class Wire>
  void run(product_slices const& slices,
           float const* from,
           Wire* to,
           [[maybe_unused]] float largest = std::numeric_limits<float>::infinity()) const
  {
    std::uint64_t const length = of_rows ? rows : columns;
    std::uint64_t const other  = of_rows ? columns : rows;
    int const lanes            = static_cast<int>(std::min<std::uint64_t>(block, length - begin));
    alignas(64) float tile[block * block];
    alignas(64) float sums[max_rank * block];
    alignas(64) float earlier[max_rank * block];
    std::fill_n(sums, rank * block, 0.0f);
    auto const step = static_cast<unsigned>(slices.step());
    for (std::uint64_t at = 0; at < other; at += step) {
      if (at > 0 && at % slices.each() == 0) {
        add_earlier(sums, earlier, at > slices.each());
        std::copy_n(sums, rank * block, earlier);
        std::fill_n(sums, rank * block, 0.0f);
      }
      int const terms = static_cast<int>(std::min<std::uint64_t>(step, other - at));
      load_tile(lanes, at, terms, tile);
      multiply_block(set, from + at, other, 1, rank, terms, tile, sums);
    }
    add_earlier(sums, earlier, slices.count() > 1);
    for (int k = 0; k < rank; ++k) {
      Wire* const column = to + static_cast<unsigned>(k) * length + begin;
      for (int i = 0; i < lanes; ++i) {
        float sum     = sums[k * block + i];
        float bounded = sum;
        if constexpr (sizeof(Wire) == 2) { bounded = maximum(minimum(sum, largest), -largest); }
        column[i] = from_float<Wire>(is_finite(sum) ? bounded : bits_float(0x7f800000u));
      }
    }
  }

 private:
  void add_earlier(float* sums, float const* earlier, bool there_are) const
  {
    for (int i = 0; there_are && i < rank * block; ++i) { sums[i] = earlier[i] + sums[i]; }
  }

  //! tile[t][lane], of 64 lanes: the block of the matrix whose lanes are rows or columns.
  void load_tile(int lanes, std::uint64_t term_begin, int terms, float* tile) const
  {
    if (!of_rows) {
      if (lanes < block) { std::fill_n(tile, terms * block, 0.0f); }
      for (int t = 0; t < terms; ++t) {
        load((term_begin + static_cast<unsigned>(t)) * columns + begin, lanes, tile + t * block);
      }
      return;
    }
    alignas(64) float turned[block * block];
    if (lanes < block || terms < block) { std::fill_n(turned, block * block, 0.0f); }
    for (int lane = 0; lane < lanes; ++lane) {
      load(
        (begin + static_cast<unsigned>(lane)) * columns + term_begin, terms, turned + lane * block);
    }
    transpose_block(set, turned, tile);
  }
};

}  // namespace tersum::inline v0::detail
