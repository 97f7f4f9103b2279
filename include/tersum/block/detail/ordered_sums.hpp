// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of floats and doubles that threads share, in the order that the wire format says, and what of chunks is integers.
//!
//! Libraries of reductions, like CUB, add in an order of their own, which depends on the block and the version. Norms, scales
//! and correlations must be the same bits on every rank, on any processor (docs/wire_format.md): each sum here has its tree
//! written down, and the CPU's code adds in the same order. Integers may be added in any, as by `block_scan`.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::detail {

//! @name Sums in order
//! @{
//! @brief Adds the parts of `Chunks` chunks over the lanes that share them, then the parts of each chunk. While a lane has
//! several chunks, it gives half of them to another lane at each step and goes on with the other half.
//!
//! The sum of chunk c is then parts[c / Lanes][0] of the lanes whose `member` is c modulo the lesser of Lanes and Chunks.
template <int Lanes, class Context, std::size_t Chunks, std::size_t Rows>
TERSUM_BODY void add_lanes(Context const& ctx, unsigned member, float (&parts)[Chunks][Rows])
{
  constexpr int rows   = static_cast<int>(Rows);
  constexpr int chunks = static_cast<int>(Chunks);
  int count            = chunks;
  TERSUM_UNROLL
  for (int mask = 1; mask < Lanes; mask *= 2) {
    bool const upper  = (member & static_cast<unsigned>(mask)) != 0;
    bool const halves = count > 1;
    count             = halves ? count / 2 : 1;
    TERSUM_UNROLL
    for (int i = 0; i < chunks; ++i) {
      if (i >= count) { break; }
      TERSUM_UNROLL
      for (int q = 0; q < rows; ++q) {
        float const even = parts[halves ? 2 * i : i][q];
        float const odd  = parts[halves ? 2 * i + 1 : i][q];
        float const sent = ctx.shuffle_xor(upper ? even : odd, static_cast<unsigned>(mask));
        parts[i][q]      = Context::add(upper ? odd : even, sent);
      }
    }
  }
  constexpr int kept = maximum(chunks / Lanes, 1);
  TERSUM_UNROLL
  for (int i = 0; i < kept; ++i) { parts[i][0] = sum_neighbours<rows>(ctx, parts[i]); }
}

//! Threads of a chunk that share a warp.
template <int Size>
inline constexpr unsigned lanes_of_chunk = minimum(block_chunk<Size>::threads, 32);

//! @brief The sum of one float of each thread, neighbours first. `storage` may be in use before, and is until a barrier.
template <class Context, int Size>
[[nodiscard]] TERSUM_BODY float chunk_total(Context const& ctx,
                                            float value,
                                            block_chunk<Size> const& mine,
                                            float* storage)
{
  TERSUM_UNROLL
  for (unsigned mask = 1; mask < lanes_of_chunk<Size>; mask *= 2) {
    value = Context::add(value, ctx.shuffle_xor(value, mask));
  }
  if constexpr (!block_chunk<Size>::in_warp) {
    constexpr int warps = block_chunk<Size>::threads / 32;
    ctx.sync_block();
    if (mine.thread % 32 == 0) { storage[mine.thread / 32] = value; }
    ctx.sync_block();
    float sums[extent(warps)];
    TERSUM_UNROLL
    for (int i = 0; i < warps; ++i) { sums[i] = storage[i]; }
    value = sum_neighbours<warps>(ctx, sums);
  }
  return value;
}

//! @brief The sum of one double of each lane of the warp. Steps add the upper half of the lanes to the lower; all get it.
template <class Context>
[[nodiscard]] TERSUM_BODY double warp_total(Context const& ctx, double value)
{
  TERSUM_UNROLL
  for (unsigned mask = 16; mask > 0; mask /= 2) {
    auto const bits = bit_cast<std::uint64_t>(value);
    auto const low  = ctx.shuffle_xor(static_cast<std::uint32_t>(bits), mask);
    auto const high = ctx.shuffle_xor(static_cast<std::uint32_t>(bits >> 32), mask);
    value           = value + bit_cast<double>(low | static_cast<std::uint64_t>(high) << 32);
  }
  return value;
}

//! @brief Adds each of N doubles of all threads of the block, halving from the top; the first warp gets the sums. Needs N doubles a
//! thread of `ctx.shared()`, which are in use until the next barrier.
template <int Threads, std::size_t N, class Context>
TERSUM_BODY void block_totals(Context const& ctx, double (&values)[N])
{
  double* const sums = static_cast<double*>(ctx.shared());
  unsigned const t   = ctx.thread_rank();
  TERSUM_UNROLL
  for (std::size_t j = 0; j < N; ++j) { sums[j * Threads + t] = values[j]; }
  ctx.sync_block();
  TERSUM_NO_UNROLL
  for (unsigned width = Threads / 2; width >= 32; width /= 2) {
    if (t < width) {
      TERSUM_UNROLL
      for (std::size_t j = 0; j < N; ++j) {
        double* const sum = sums + j * Threads + t;
        sum[0]            = sum[0] + sum[width];
      }
    }
    ctx.sync_block();
  }
  if (t < 32) {
    TERSUM_UNROLL
    for (std::size_t j = 0; j < N; ++j) { values[j] = warp_total(ctx, sums[j * Threads + t]); }
  }
}
//! @}

//! @name Integers of a chunk
//! @{
//! @brief The largest of one integer of each thread. `storage` must not be in use before, and is free afterwards.
template <class Context, int Size>
[[nodiscard]] TERSUM_BODY std::uint32_t chunk_maximum(Context const& ctx,
                                                      std::uint32_t value,
                                                      block_chunk<Size> const& mine,
                                                      float* storage)
{
  TERSUM_UNROLL
  for (unsigned mask = 1; mask < lanes_of_chunk<Size>; mask *= 2) {
    value = maximum(value, ctx.shuffle_xor(value, mask));
  }
  if constexpr (!block_chunk<Size>::in_warp) {
    auto* const words = reinterpret_cast<std::uint32_t*>(storage);
    if (mine.thread % 32 == 0) { words[mine.thread / 32] = value; }
    ctx.sync_block();
    for (int warp = 0; warp < block_chunk<Size>::threads / 32; ++warp) {
      value = maximum(value, words[warp]);
    }
    ctx.sync_block();
  }
  return value;
}

//! @brief The sum over the chunk of one integer of each thread; thread 0 gets it. `storage` is free before and afterwards.
template <class Context, int Size>
[[nodiscard]] TERSUM_BODY std::uint32_t chunk_sum(Context const& ctx,
                                                  std::uint32_t value,
                                                  block_chunk<Size> const& mine,
                                                  float* storage)
{
  if constexpr (block_chunk<Size>::threads < 32) {
    TERSUM_UNROLL
    for (unsigned mask = 1; mask < static_cast<unsigned>(block_chunk<Size>::threads); mask *= 2) {
      value += ctx.shuffle_xor(value, mask);
    }
    return value;
  } else {
    value = ctx.warp_sum(value);
    if constexpr (block_chunk<Size>::in_warp) { return value; }
    std::uint32_t* const sums = reinterpret_cast<std::uint32_t*>(storage);
    if (mine.thread % 32 == 0) { sums[mine.thread / 32] = value; }
    ctx.sync_block();
    value = 0;
    if (mine.thread == 0) {
      for (int warp = 0; warp < block_chunk<Size>::threads / 32; ++warp) { value += sums[warp]; }
    }
    ctx.sync_block();
    return value;
  }
}
//! @}

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
template <class Shape, class Context, class Load, std::size_t Rows>
TERSUM_BODY void add_squares(Context const&, Load const& load, float (&parts)[Rows])
{
  constexpr int rows            = static_cast<int>(Rows);
  constexpr int row             = Shape::row;
  constexpr int octets          = rows * row / 8;
  float sums[Rows][extent(row)] = {};
  constexpr int steps           = Shape::size < 256 ? 1 : Shape::size / 256;
  constexpr int unroll = minimum(steps, 8 / octets);  // eight loads at a time are enough in flight
  for (int outer = 0; outer < steps; outer += unroll) {
    float v[extent(unroll)][Rows][extent(row)];
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
      for (int q = 0; q < rows; ++q) {
        TERSUM_UNROLL
        for (int j = 0; j < row; ++j) {
          float& sum = sums[q][Shape::fuses ? j / 2 * 2 : j];
          sum        = Context::fma(v[inner][q][j], v[inner][q][j], sum);
        }
      }
    }
  }
  TERSUM_UNROLL
  for (int q = 0; q < rows; ++q) {
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
