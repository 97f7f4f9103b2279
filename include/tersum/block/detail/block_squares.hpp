// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of squares of chunks, over a thread and over the lanes that share chunks: kernel body parts.

#pragma once

#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief How blocks of 128 threads share chunks out for their norms: so many coordinates a thread that what it does once
//! does not weigh, of several chunks where they are short. Four threads share the shortest: fewer would read a few bytes
//! each of many lines.
//! @tparam Size     Coordinates in a chunk.
//! @tparam Element  What is read.
//! @tparam Several  Whether each value is the sum of several, which takes as many registers again.
template <int Size, class Element, bool Several = false>
struct norm_shape {
  static constexpr int size  = Size;
  static constexpr int bytes = size * static_cast<int>(sizeof(Element));
  //! Threads that share a chunk.
  static constexpr int lanes = minimum(maximum(bytes / 256, size > 256 ? 8 : 4), 32);
  //! Accumulators that a thread has in a row: of 32 bytes, where there are so many.
  static constexpr int row = bytes / size == 2 && minimum(size, 256) >= 16 * lanes ? 16 : 8;
  //! Its rows, of the 256 accumulators or of as many as a chunk fills.
  static constexpr int rows = minimum(size, 256) / row / lanes;
  //! Whether a square and its sum with the next are one multiply-add, with the same bits: where an accumulator has one
  //! square, and it is exact, as those of halves are, which end at 2^-48.
  static constexpr bool fuses = std::is_same_v<Element, half> && size <= 256 && !Several;
  //! Chunks of a thread, one after the other.
  static constexpr int chunks = minimum(maximum((Several ? 64 : 128) * lanes / size, 1), 8);
  static constexpr int chunks_per_warp  = 32 / lanes * chunks;
  static constexpr int chunks_per_block = 4 * chunks_per_warp;
};

//! @brief What one thread adds up of a chunk: accumulators (q lanes + member) row + j are summed over j into parts[q].
//! @tparam Shape  A `norm_shape`.
//! @param load  load(within, v): eight values of the chunk, from coordinate `within` of those after the thread's first.
template <class Shape, class Context, class Load, int Rows>
TERSUM_BODY void add_squares(Context const&, Load const& load, float (&parts)[Rows])
{
  constexpr int row     = Shape::row;
  constexpr int octets  = Rows * row / 8;
  float sums[Rows][row] = {};
  constexpr int steps   = Shape::size < 256 ? 1 : Shape::size / 256;
  constexpr int unroll  = minimum(steps, 8 / octets);  // eight loads at a time are enough in flight
  for (int outer = 0; outer < steps; outer += unroll) {
    float v[unroll][Rows][row];
    TERSUM_UNROLL
    for (int inner = 0; inner < unroll; ++inner) {
      TERSUM_UNROLL
      for (int octet = 0; octet < octets; ++octet) {
        int const q      = octet * 8 / row;
        int const j      = octet * 8 % row;
        int const within = (outer + inner) * 256 + q * Shape::lanes * row + j;
        load(within, v[inner][q] + j);
      }
    }
    TERSUM_UNROLL
    for (int inner = 0; inner < unroll; ++inner) {
      TERSUM_UNROLL
      for (int q = 0; q < Rows; ++q) {
        TERSUM_UNROLL
        for (int j = 0; j < row; ++j) {
          float& sum = sums[q][Shape::fuses ? j / 2 * 2 : j];
          sum        = Context::fma(v[inner][q][j], v[inner][q][j], sum);
        }
      }
    }
  }
  TERSUM_UNROLL
  for (int q = 0; q < Rows; ++q) {
    TERSUM_UNROLL
    for (int width = Shape::fuses ? 2 : 1; width < row; width *= 2) {
      TERSUM_UNROLL
      for (int j = 0; j < row; j += 2 * width) {
        sums[q][j] = Context::add(sums[q][j], sums[q][j + width]);
      }
    }
    parts[q] = sums[q][0];
  }
}

}  // namespace tersum::inline v0::detail
