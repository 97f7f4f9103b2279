// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The product of a matrix and a factor, 64 rows or columns by one block. Kernel body.

#pragma once

#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

inline constexpr int product_threads = 128;  //!< Threads of a block of 64 rows or columns.
inline constexpr int product_stride =
  68;  //!< Floats from one row of 64 values to the next in shared memory.

//! @brief What is multiplied, and where sums go, in kernels.
template <class Wire>
struct matrix_product {
  float const* from    = nullptr;  //!< The factor that is multiplied, column after column.
  std::uint64_t offset = 0;        //!< First element of the matrix in what it is read from.
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t length;  //!< Of a column of the product: rows or columns.
  std::uint32_t rank;
  bool of_rows;  //!< The product has the rows of the matrix: M Q rather than M^T P.
  product_slices slices = {};
  Wire* to              = nullptr;  //!< The product, column after column.
  float* sums =
    nullptr;  //!< A float for each element of it, for what is carried from slice to slice; may be `to`.
  float* partials = nullptr;  //!< Sums of slices of all products.
  //! Its own ones if each slice is a block of its own.
  std::uint32_t first_partial = slice_placement::undivided;
  //! Of 16-bit elements: finite products end there, at either sign.
  float largest = std::numeric_limits<float>::infinity();

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool is_divided() const noexcept
  {
    return first_partial != slice_placement::undivided;
  }
  //! Blocks of 64 rows or columns.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t blocks() const noexcept
  {
    return (length + 63) / 64;
  }
};

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
    thread_values<8>::store(ctx, v, to + k * product_stride + i % 8 * 8);
  }
}

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
  template <class Wire>
  TERSUM_BODY block_product(Context const& ctx,
                            Load const& load,
                            matrix_product<Wire> const& product,
                            std::uint64_t begin)
    : ctx_(ctx), load_(load), offset_(product.offset), matrix_rows_(product.rows),
      matrix_columns_(product.columns), length_(product.length), rank_(product.rank),
      rows_(product.of_rows), begin_(begin), tile_(static_cast<float*>(ctx.shared())),
      factor_(tile_ + 64 * product_stride)
  {
  }

  //! @brief The sum of all slices, rounded to the elements of the product; or that of one slice, in float.
  //! @param slices  Those of the product.
  //! @param begin   The first term: 0, or that of the slice.
  //! @param end     One behind the last term.
  //! @param from    The factor of this matrix that is multiplied.
  //! @param sums    A float for each element of the product, carried from slice to slice; may be `to`. Of one: the result.
  //! @param to      The product; null for one slice.
  //! @param largest  Of 16-bit elements: finite products end there, at either sign.
  template <class Wire>
  TERSUM_BODY void run(product_slices const& slices,
                       std::uint64_t begin,
                       std::uint64_t end,
                       float const* from,
                       float* sums,
                       Wire* to,
                       [[maybe_unused]] float largest = 0.0f)
  {
    auto const step    = static_cast<unsigned>(slices.step());
    auto const of_each = static_cast<unsigned>(slices.each() >> (slices.log < 6 ? slices.log : 6));
    auto const tiles   = static_cast<unsigned>((end - begin + step - 1) / step);
    float next[4][8];
    // The next tile is loaded while one is multiplied.
    for (unsigned tile = 0;; ++tile) {
      std::uint64_t const at = begin + std::uint64_t{tile} * step;
      bool const last        = tile == tiles;
      if (!last) { load_tile(at, step, next); }
      if (tile > 0) {
        if (rows_) {
          multiply_tile<true>(step);
        } else {
          multiply_tile<false>(step);
        }
      }
      if (last || (tile > 0 && (tile & (of_each - 1)) == 0)) {
        bool const carried = tile > of_each;
        bool const sends   = last && to != nullptr;
        if constexpr (sizeof(Wire) == 4) {
          end_slice(sums, carried, sends ? to : sums, largest);
        } else if (sends) {
          end_slice(sums, carried, to, largest);
        } else {
          end_slice(sums, carried, sums, largest);
        }
        if (last) { return; }
      }
      ctx_.sync_block();
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        thread_values<8>::store(
          ctx_, next[i], tile_ + (group() + 16 * i) * product_stride + place());
      }
      std::uint64_t const terms = rows_ ? matrix_columns_ : matrix_rows_;
      load_factor<columns>(ctx_, from, terms, static_cast<int>(rank_), at, factor_);
      ctx_.sync_block();
    }
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

  TERSUM_BODY void load_tile(std::uint64_t term, unsigned step, float (&v)[4][8]) const
  {
    std::uint64_t const column = (rows_ ? term : begin_) + static_cast<unsigned>(place());
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      std::uint64_t const row = (rows_ ? begin_ : term) + static_cast<unsigned>(group() + 16 * i);
      bool const wanted =
        (rows_ ? place() : group() + 16 * i) < static_cast<int>(step) && row < matrix_rows_;
      int const count = wanted ? count_of_eight(matrix_columns_, column) : 0;
      load_(ctx_, offset_ + row * matrix_columns_ + column, count, v[i]);
    }
  }

  template <bool Rows>
  TERSUM_BODY void multiply_tile(unsigned step)
  {
    float part[4][extent(each)] = {};
    TERSUM_NO_UNROLL
    for (int t = 0; t < static_cast<int>(step); t += 4) {
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

  // Adds what the slices before left in `earlier`, and writes sums, which start again from zero. They lie in the place of the
  // factor in between, so that neighbours are written by neighbours. A sum that is not finite never becomes so again:
  // infinity can stand for it between slices too.
  template <class Wire>
  TERSUM_BODY void end_slice(float const* earlier, bool carried, Wire* to, float largest)
  {
    ctx_.sync_block();
    TERSUM_UNROLL
    for (int k = 0; k < each; ++k) {
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        ctx_.store(factor_ + (first_column() + 8 * k) * product_stride + lane(i), sum_[i][k]);
        sum_[i][k] = 0.0f;
      }
    }
    ctx_.sync_block();
    auto const thread       = static_cast<unsigned>(ctx_.thread_rank());
    std::uint64_t const row = begin_ + thread % 64;
    if (row >= length_) { return; }
    // Loads of some columns at a time are in flight together.
    constexpr unsigned at_once = each == 1 ? 4 : 8;
    for (unsigned first = thread / 64; first < rank_; first += 2 * at_once) {
      float v[at_once];
      TERSUM_UNROLL
      for (unsigned j = 0; j < at_once; ++j) {
        unsigned const column = first + 2 * j;
        bool const reads      = carried && column < rank_;
        v[j]                  = reads ? ctx_.load(earlier + column * length_ + row) : 0.0f;
      }
      TERSUM_UNROLL
      for (unsigned j = 0; j < at_once; ++j) {
        unsigned const column = first + 2 * j;
        if (column >= rank_) { continue; }
        float const sum =
          Context::add(v[j], ctx_.load(factor_ + column * product_stride + thread % 64));
        ctx_.store(to + column * length_ + row,
                   Context::template element<Wire>(sent_of_product<Wire>(sum, largest)));
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

//! @brief One block of a product: 64 elements of its columns, of all slices to its place or, where it is divided, of one slice to
//! the sums of slices.
//! @param number  Of the block among those of the product.
template <int Rank, class Load, class Wire, class Context>
TERSUM_BODY void multiply_part(Context const& ctx,
                               Load const& load,
                               matrix_product<Wire> const& product,
                               std::uint64_t number)
{
  product_slices const slices = product.slices;
  std::uint64_t begin = 0, end = slices.terms;
  bool const divided = product.is_divided();
  Wire* const to     = divided ? nullptr : product.to;
  float* sums        = product.sums;
  if (divided) {
    // There are few enough for 32 bits.
    auto const blocks = static_cast<std::uint32_t>(product.blocks());
    auto const slice  = static_cast<std::uint32_t>(number) / blocks;
    number            = static_cast<std::uint32_t>(number) % blocks;
    begin             = std::uint64_t{slice} << slices.log;
    end               = minimum(end, begin + slices.each());
    sums = product.partials + product.first_partial + slice * product.rank * product.length;
  }
  block_product<Rank, Load, Context>{ctx, load, product, number * 64}.run(
    slices, begin, end, product.from, sums, to, product.largest);
}

}  // namespace tersum::inline v0::detail
