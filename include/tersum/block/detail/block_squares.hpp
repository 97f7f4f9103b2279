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

//! @brief How the chunks are distributed over blocks of 128 threads to compute their norms.
//!
//! A thread has so many coordinates (128 or more, with feedback 64) that the instructions which it executes only once
//! hardly count. Where chunks are short they are of several chunks. At least four threads share a chunk: with fewer, the
//! accesses of a warp would touch a few bytes of many cache lines each.
//! @tparam Size     Coordinates in a chunk.
//! @tparam Element  What is read.
//! @tparam Several  Whether each value is the sum of several, which takes as many registers again.
template <int Size, class Element, bool Several = false>
struct norm_shape {
  static constexpr int size  = Size;
  static constexpr int bytes = size * static_cast<int>(sizeof(Element));
  //! Threads that share a chunk.
  static constexpr int lanes = minimum(maximum(bytes / 256, size > 256 ? 8 : 4), 32);
  //! Accumulators that a thread has in a row: as many as 32 bytes of the gradient, if the chunk has enough coordinates.
  static constexpr int row = bytes / size == 2 && minimum(size, 256) >= 16 * lanes ? 16 : 8;
  //! Rows of a thread. All threads of a chunk have 256 accumulators together, or as many as a shorter chunk fills.
  static constexpr int rows = minimum(size, 256) / row / lanes;
  //! Whether a square is added to the one before by the multiply-add that makes it, with the same bits. That holds where
  //! each accumulator has one square only and squares are exact, as those of halves are, whose last bit is at least 2^-48.
  static constexpr bool fuses = std::is_same_v<Element, half> && size <= 256 && !Several;
  //! Chunks of a thread, one after the other.
  static constexpr int chunks = minimum(maximum((Several ? 64 : 128) * lanes / size, 1), 8);
  static constexpr int chunks_per_warp  = 32 / lanes * chunks;
  static constexpr int chunks_per_block = 4 * chunks_per_warp;
};

//! @brief Adds up one thread's coordinates of a chunk: parts[q] becomes the sum over j of its accumulators number
//! (q lanes + member) row + j, where `member` is the thread's place in the chunk.
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
