// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The products of all matrices of a plan and their factors, 64 rows or columns by one block. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/lowrank/detail/factor_stages.hpp>
#include <tersum/lowrank/matrix_record.hpp>
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
    thread_values<8>::store(ctx, v, to + k * product_stride + i % 8 * 8);
  }
}

//! @brief Up to eight values of one row of a matrix, with what feedback kept; zeros beyond the row.
//! @tparam Multiplied  Whether they are those of products: see `gradient_of`.
template <bool Multiplied, class Codec, class Element, class Context>
TERSUM_BODY void load_values(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint64_t at,
                             int count,
                             float (&v)[8])
{
  load_some(ctx, args.gradient + at, count, v);
  float kept[8] = {};
  if (feeds_back<Codec>) { load_some(ctx, args.residual + at, count, kept); }
  TERSUM_UNROLL
  for (int i = 0; i < 8; ++i) {
    v[i] = element_of_matrix<Multiplied>(context_arithmetic<Context>{}, args, v[i], kept[i]);
  }
}

//! @brief The products of one block: 64 rows or columns of a matrix with all columns of a factor.
//!
//! A tile of 64 x 64 elements of the matrix lies in shared memory, in the order of the gradient, and beside it the rows of
//! the factor that it is multiplied by. A thread computes four rows (or columns) by every eighth column of the factor. While
//! one tile is multiplied, the next is loaded.
template <class Codec, class Element, class Context>
class block_product {
  using wire = typename Codec::quantizer_type::element;

 public:
  static constexpr int each = (Codec::rank + 7) / 8;  //!< Columns of the factor that a thread has.
  static constexpr int columns = 8 * each;
  //! Shared memory, bytes.
  static constexpr int shared = (64 + columns) * product_stride * static_cast<int>(sizeof(float));

  //! @param length   Of a column of the product: rows or columns.
  //! @param of_rows  The product has the rows of the matrix: M Q rather than M^T P.
  //! @param begin    The first of the 64 rows or columns.
  TERSUM_BODY block_product(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            std::uint64_t offset,
                            std::uint64_t rows,
                            std::uint64_t columns,
                            std::uint64_t length,
                            std::uint32_t rank,
                            bool of_rows,
                            std::uint64_t begin)
    : ctx_(ctx), args_(args), offset_(offset), matrix_rows_(rows), matrix_columns_(columns),
      length_(length), rank_(rank), rows_(of_rows), begin_(begin),
      tile_(static_cast<float*>(ctx.shared())), factor_(tile_ + 64 * product_stride)
  {
  }

  //! @brief The sum of all slices, rounded to the elements of the product; or that of one slice, in float.
  //! @param slices  Those of the product.
  //! @param begin   The first term: 0, or that of the slice.
  //! @param end     One behind the last term.
  //! @param from    The factor of this matrix that is multiplied.
  //! @param sums    A float for each element of the product, carried from slice to slice; may be `to`. Of one: the result.
  //! @param to      The product; null for one slice.
  TERSUM_BODY void run(product_slices const& slices,
                       std::uint64_t begin,
                       std::uint64_t end,
                       float const* from,
                       float* sums,
                       wire* to)
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
        if constexpr (sizeof(wire) == 4) {
          end_slice(sums, carried, sends ? to : sums);
        } else if (sends) {
          end_slice(sums, carried, to);
        } else {
          end_slice(sums, carried, sums);
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
      load_values<true>(ctx_, args_, offset_ + row * matrix_columns_ + column, count, v[i]);
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
  template <class To>
  TERSUM_BODY void end_slice(float const* earlier, bool carried, To* to)
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
                   Context::template element<To>(sent_of_product<To>(sum, args_.parts.largest)));
      }
    }
  }

  Context const& ctx_;
  exchange_args<Codec, Element> const& args_;
  std::uint64_t offset_, matrix_rows_, matrix_columns_, length_;
  std::uint32_t rank_;
  bool rows_;
  std::uint64_t begin_;
  float* tile_;
  float* factor_;
  float sum_[4][extent(each)] = {};
};

//! @brief Computes the factors of a turn for all matrices from those of the other turn, and writes them to the wire, or the
//! sums of slices to the workspace. A block has 64 elements of the columns of one matrix, and all slices or one of them.
template <class Codec, class Element, class Context>
TERSUM_BODY void multiply_matrices(Context const& ctx,
                                   exchange_args<Codec, Element> const& args,
                                   int turn,
                                   float const* from)
{
  std::uint64_t const number = ctx.block_rank();
  if (number >= args.parts.end.first_product[turn]) { return; }
  auto const first       = [turn](matrix_record const& m) { return m.first_product[turn]; };
  matrix_record const& m = args.table[find_matrix(args, number, first)];
  auto const& parts      = args.parts;
  // All of the record is read before slices are told apart: nvcc makes more instructions of anything else.
  float const* const multiplied = from + m.slot[1 - turn];
  std::uint64_t const offset = m.offset, rows = m.rows, columns = m.columns,
                      length  = m.length(turn);
  std::uint32_t const rank    = m.rank;
  bool const of_rows          = m.sends_rows(turn);
  product_slices const slices = m.slices(turn);
  auto* const all             = parts.wire[turn] + m.slot[turn];
  float* sums                 = parts.factor[agrees<Codec> ? turn : 1] + m.slot[turn];
  std::uint32_t const partial = m.first_partial[turn];
  std::uint64_t block         = number - first(m);
  std::uint64_t begin = 0, end = slices.terms;
  bool const divided = partial != slice_placement::undivided;
  auto* const to     = divided ? nullptr : all;
  if (divided) {
    // There are few enough for 32 bits.
    auto const blocks = static_cast<std::uint32_t>((length + 63) / 64);
    auto const slice  = static_cast<std::uint32_t>(block) / blocks;
    block             = static_cast<std::uint32_t>(block) % blocks;
    begin             = std::uint64_t{slice} << slices.log;
    end               = minimum(end, begin + slices.each());
    sums              = parts.partials + partial + slice * rank * length;
  }
  block_product<Codec, Element, Context>{
    ctx, args, offset, rows, columns, length, rank, of_rows, block * 64}
    .run(slices, begin, end, multiplied, sums, to);
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
  using wire                 = typename Codec::quantizer_type::element;
  std::uint64_t const number = ctx.block_rank() / adders_of_block<Codec>;
  if (number >= args.parts.end.first_block[turn]) { return; }
  auto const first       = [turn](matrix_record const& m) { return m.first_block[turn]; };
  matrix_record const& m = args.table[find_matrix(args, number, first)];
  if (!m.is_divided(turn)) { return; }
  std::uint64_t const length = m.length(turn);
  std::uint64_t const row    = (number - first(m)) * 64 + ctx.thread_rank() % 64;
  unsigned const column = ctx.block_rank() % adders_of_block<Codec> * 2 + ctx.thread_rank() / 64;
  if (column >= m.rank || row >= length) { return; }
  std::uint64_t const at     = column * length + row;
  std::uint64_t const size   = m.rank * length;
  float const* sums          = args.parts.partials + m.first_partial[turn] + at;
  auto const count           = static_cast<unsigned>(m.slices(turn).count());
  constexpr unsigned at_once = 16;
  float sum                  = 0;
  for (unsigned i = 0; i < count; i += at_once) {
    float v[at_once];
    TERSUM_UNROLL
    for (unsigned j = 0; j < at_once; ++j) {
      v[j] = i + j < count ? ctx.load(sums + j * size) : 0.0f;
    }
    TERSUM_UNROLL
    for (unsigned j = 0; j < at_once; ++j) { sum = Context::add(sum, v[j]); }
    sums += at_once * size;
  }
  ctx.store(args.parts.wire[turn] + m.slot[turn] + at,
            Context::template element<wire>(sent_of_product<wire>(sum, args.parts.largest)));
}

}  // namespace tersum::inline v0::detail
