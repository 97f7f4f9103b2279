// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The product of a matrix and a factor, 64 rows or columns by one block. Kernel body.

#pragma once

#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

inline constexpr int product_threads = 128;  //!< Threads of a block of 64 rows or columns.
inline constexpr int product_stride =
  68;  //!< Floats from one row of 64 values to the next in shared memory.

//! @brief How many of eight values from `begin` on exist.
[[nodiscard]] TERSUM_BODY int count_of_eight(std::uint64_t length, std::uint64_t begin)
{
  return begin < length ? static_cast<int>(minimum<std::uint64_t>(8, length - begin)) : 0;
}

//! @brief Copies 64 values of each column of a factor to shared memory; values that do not exist become zeros.
template <int Columns, class Context>
TERSUM_BODY void load_factor(Context const& ctx,
                             float const* from,
                             std::uint64_t length,
                             int rank,
                             std::uint64_t begin,
                             float* to)
{
  for (int i = static_cast<int>(ctx.thread_rank()); i < Columns * 8; i += product_threads) {
    int const k             = i / 8;
    std::uint64_t const row = begin + static_cast<unsigned>(i % 8 * 8);
    int const count         = k < rank ? count_of_eight(length, row) : 0;
    float v[8];
    load_some(ctx, from + static_cast<unsigned>(k) * length + row, count, v);
    store_eight(ctx, to + k * product_stride + i % 8 * 8, v);
  }
}

//! @brief The rows and columns of a matrix that is multiplied, and whether the product has its rows: M Q rather than M^T P.
struct product_shape {
  std::uint64_t offset;  //!< First element of the matrix in what it is read from.
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t length;  //!< Rows of the product.
  std::uint32_t rank;
  bool of_rows;
};

//! @brief The products of one block: 64 rows or columns of a matrix with all columns of a factor.
//!
//! A tile of 64 x 64 elements of the matrix lies in shared memory, in the order of the gradient, and beside it the rows of
//! the factor that it is multiplied by. A thread computes four rows (or columns) by every eighth column of the factor. While
//! one tile is multiplied, the next is loaded.
//! @tparam Rank  No factor has more columns.
//! @tparam Load  load(ctx, at, count, v): up to eight neighbours of the matrix from element `at`, zeros beyond `count`.
template <int Rank, class Load, class Context>
class block_product {
 public:
  static constexpr int each    = (Rank + 7) / 8;  //!< Columns of the factor that a thread has.
  static constexpr int columns = 8 * each;
  //! Shared memory, bytes.
  static constexpr int shared = (64 + columns) * product_stride * static_cast<int>(sizeof(float));

  //! @param begin  The first of the 64 rows or columns.
  TERSUM_BODY block_product(Context const& ctx,
                            Load const& load,
                            product_shape const& shape,
                            std::uint64_t begin)
    : ctx_(ctx), load_(load), offset_(shape.offset), matrix_rows_(shape.rows),
      matrix_columns_(shape.columns), length_(shape.length), rank_(shape.rank),
      rows_(shape.of_rows), begin_(begin), tile_(static_cast<float*>(ctx.shared())),
      factor_(tile_ + 64 * product_stride)
  {
  }

  //! @param from  The factor of this matrix that is multiplied.
  //! @param to    The product, rounded to its elements.
  //! @param largest  Of 16-bit elements: finite products end there, at either sign.
  template <class Wire>
  TERSUM_BODY void run(float const* from, Wire* to, [[maybe_unused]] float largest = 0.0f)
  {
    std::uint64_t const terms = rows_ ? matrix_columns_ : matrix_rows_;
    float next[4][8];
    load_tile(0, next);
    for (std::uint64_t at = 0; at < terms; at += 64) {
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        store_eight(ctx_, tile_ + (group() + 16 * i) * product_stride + place(), next[i]);
      }
      load_factor<columns>(ctx_, from, terms, static_cast<int>(rank_), at, factor_);
      ctx_.sync_block();
      if (at + 64 < terms) { load_tile(at + 64, next); }
      if (rows_) {
        multiply_tile<true>();
      } else {
        multiply_tile<false>();
      }
      ctx_.sync_block();
    }
    send(to, largest);
  }

 private:
  // A thread loads eight neighbours of every 16th row.
  [[nodiscard]] TERSUM_BODY int group() const { return static_cast<int>(ctx_.thread_rank()) / 8; }
  [[nodiscard]] TERSUM_BODY int place() const
  {
    return static_cast<int>(ctx_.thread_rank()) % 8 * 8;
  }
  // A thread multiplies four of the 64 lanes, which are the tile's rows or columns. Rows are far apart, columns neighbours.
  [[nodiscard]] TERSUM_BODY int lane(int i) const
  {
    int const lanes = static_cast<int>(ctx_.thread_rank()) % 16;
    return rows_ ? lanes + 16 * i : 4 * lanes + i;
  }
  [[nodiscard]] TERSUM_BODY int first_column() const
  {
    return static_cast<int>(ctx_.thread_rank()) / 16;
  }

  TERSUM_BODY void load_tile(std::uint64_t term, float (&v)[4][8]) const
  {
    std::uint64_t const column = (rows_ ? term : begin_) + static_cast<unsigned>(place());
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      std::uint64_t const row = (rows_ ? begin_ : term) + static_cast<unsigned>(group() + 16 * i);
      int const count         = row < matrix_rows_ ? count_of_eight(matrix_columns_, column) : 0;
      load_(ctx_, offset_ + row * matrix_columns_ + column, count, v[i]);
    }
  }

  template <bool Rows>
  TERSUM_BODY void multiply_tile()
  {
    float part[4][extent(each)] = {};
    for (int t = 0; t < 64; t += 4) {
      word4 v[4];
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        // Loads four terms of lane i, or four lanes of term i.
        v[i] = ctx_.load(
          reinterpret_cast<word4 const*>(Rows ? tile_ + lane(i) * product_stride + t
                                              : tile_ + (t + i) * product_stride + lane(0)));
      }
      TERSUM_UNROLL
      for (int k = 0; k < each; ++k) {
        word4 const f = ctx_.load(
          reinterpret_cast<word4 const*>(factor_ + (first_column() + 8 * k) * product_stride + t));
        TERSUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          TERSUM_UNROLL
          for (int term = 0; term < 4; ++term) {
            part[i][k] = Context::fma(
              word_of(f, term), Rows ? word_of(v[i], term) : word_of(v[term], i), part[i][k]);
          }
        }
      }
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      TERSUM_UNROLL
      for (int k = 0; k < each; ++k) { sum_[i][k] = Context::add(sum_[i][k], part[i][k]); }
    }
  }

  [[nodiscard]] TERSUM_BODY static float word_of(word4 const& four, int i)
  {
    return Context::from_bits(i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w);
  }

  template <class Wire>
  TERSUM_BODY void send(Wire* to, [[maybe_unused]] float largest) const
  {
    TERSUM_UNROLL
    for (int k = 0; k < each; ++k) {
      unsigned const column = static_cast<unsigned>(first_column() + 8 * k);
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        std::uint64_t const row = begin_ + static_cast<unsigned>(lane(i));
        if (column >= rank_ || row >= length_) { continue; }
        float sent = sum_[i][k];
        if constexpr (sizeof(Wire) == 2) { sent = maximum(minimum(sent, largest), -largest); }
        sent = is_finite(sum_[i][k]) ? sent : Context::from_bits(0x7f800000u);
        ctx_.store(to + column * length_ + row, Context::template element<Wire>(sent));
      }
    }
  }

  Context const& ctx_;
  Load const& load_;
  std::uint64_t offset_, matrix_rows_, matrix_columns_, length_;
  std::uint32_t rank_;
  bool rows_;
  std::uint64_t begin_;
  float* tile_;
  float* factor_;
  float sum_[4][extent(each)] = {};
};

}  // namespace tersum::inline v0::detail
