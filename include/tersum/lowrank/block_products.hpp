// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of all matrices of a bucket with their factors, and the matrices that the factors make. Kernel bodies.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/low_rank_args.hpp>
#include <tersum/quantize/block_cast.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

inline constexpr int product_threads = 128;  //!< Threads of a block of 64 rows or columns.
inline constexpr int product_stride  = 68;   //!< Of 64 values in shared memory, in floats.
inline constexpr int rebuild_splits  = 4;    //!< Blocks that share the columns of 64 rows.

//! @brief The turn under way: its factor is the one that this exchange sends last.
template <class Codec, class Element>
[[nodiscard]] TERSUM_BODY int turn_of(exchange_args<Codec, Element> const& args)
{
  return Codec::agrees ? 1 : static_cast<int>(args.matrices[0].turns % 2);
}

//! @brief Number of the matrix that a block belongs to: the last one with first(matrix) <= number.
template <class Codec, class Element, class First>
[[nodiscard]] TERSUM_BODY std::uint64_t find_matrix(exchange_args<Codec, Element> const& args,
                                                    std::uint64_t number,
                                                    First const& first)
{
  std::uint64_t low = 0, high = args.chunks;
  while (high - low > 1) {
    std::uint64_t const middle = (low + high) / 2;
    if (first(args.matrices[middle]) <= number) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

//! @brief Up to eight values of one row of a matrix, gradient plus residual; zeros beyond the row.
template <class Codec, class Element, class Context>
TERSUM_BODY void load_values(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint64_t at,
                             int count,
                             float (&v)[8])
{
  load_some(ctx, args.gradient + at, count, v);
  if constexpr (Codec::feeds_back) {
    float kept[8];
    load_some(ctx, args.residual + at, count, kept);
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) { v[i] = Context::add(v[i], kept[i]); }
  }
}

//! @brief Up to eight values of one row of a matrix.
template <class Element, class Context>
TERSUM_BODY void store_values(Context const& ctx, Element* to, int count, float const (&v)[8])
{
  if (count == 8 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    auto* const vector = reinterpret_cast<word4*>(to);
    if constexpr (sizeof(Element) == 4) {
      ctx.store_global(
        vector,
        {Context::bits(v[0]), Context::bits(v[1]), Context::bits(v[2]), Context::bits(v[3])});
      ctx.store_global(
        vector + 1,
        {Context::bits(v[4]), Context::bits(v[5]), Context::bits(v[6]), Context::bits(v[7])});
    } else {
      ctx.store_global(vector,
                       {Context::template pack<Element>(v[0], v[1]),
                        Context::template pack<Element>(v[2], v[3]),
                        Context::template pack<Element>(v[4], v[5]),
                        Context::template pack<Element>(v[6], v[7])});
    }
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      if (j < count) { ctx.store(to + j, Context::template element<Element>(v[j])); }
    }
  }
}

//! @brief How many of eight values from `begin` on exist.
[[nodiscard]] TERSUM_BODY int count_of_eight(std::uint64_t length, std::uint64_t begin)
{
  return begin < length ? static_cast<int>(minimum<std::uint64_t>(8, length - begin)) : 0;
}

//! @brief 64 values of each of the columns of a factor to shared memory, zeros where there are none.
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

//! @brief The products of one block: 64 rows or columns of a matrix with all columns of a factor.
//!
//! A tile of 64 x 64 of the matrix lies in shared memory as in the gradient, the factor's part beside it; a thread has
//! four lanes by every eighth column of the factor. The next tile is under way while one is multiplied.
template <class Codec, class Element, class Context>
class block_product {
 public:
  static constexpr int each = (Codec::rank + 7) / 8;  //!< Columns of the factor that a thread has.
  static constexpr int columns = 8 * each;

  TERSUM_BODY block_product(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            matrix_record const& m,
                            int turn,
                            std::uint64_t begin)
    : ctx_(ctx), args_(args), offset_(m.offset), matrix_rows_(m.rows), matrix_columns_(m.columns),
      length_(m.length(turn)), rank_(m.rank), rows_(m.sends_rows(turn)), begin_(begin),
      tile_(static_cast<float*>(ctx.shared())), factor_(tile_ + 64 * product_stride)
  {
  }

  //! @param from  The factor of this matrix that is multiplied.
  //! @param to    This matrix' factor on the wire.
  TERSUM_BODY void run(float const* from, typename Codec::wire_element* to)
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
    send(to);
  }

 private:
  // A thread loads eight neighbours of every 16th row.
  [[nodiscard]] TERSUM_BODY int group() const { return static_cast<int>(ctx_.thread_rank()) / 8; }
  [[nodiscard]] TERSUM_BODY int place() const
  {
    return static_cast<int>(ctx_.thread_rank()) % 8 * 8;
  }
  // A thread multiplies four of the 64 lanes: far apart where they are rows, neighbours where they are columns.
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
      load_values(ctx_, args_, offset_ + row * matrix_columns_ + column, count, v[i]);
    }
  }

  template <bool Rows>
  TERSUM_BODY void multiply_tile()
  {
    float part[4][each] = {};
    for (int t = 0; t < 64; t += 4) {
      word4 v[4];
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        // Of lane i four terms, or of term i four lanes.
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

  TERSUM_BODY void send(typename Codec::wire_element* to) const
  {
    TERSUM_UNROLL
    for (int k = 0; k < each; ++k) {
      unsigned const column = static_cast<unsigned>(first_column() + 8 * k);
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        std::uint64_t const row = begin_ + static_cast<unsigned>(lane(i));
        if (column >= rank_ || row >= length_) { continue; }
        float const sent = is_finite(sum_[i][k]) ? sum_[i][k] : Context::from_bits(0x7f800000u);
        ctx_.store(to + column * length_ + row,
                   Context::template element<typename Codec::wire_element>(sent));
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
  float sum_[4][each] = {};
};

//! @brief The factor of a turn for all matrices to the wire, from the other turn's. A block has 64 elements of its columns.
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
  block_product<Codec, Element, Context>{ctx, args, m, turn, (number - first(m)) * 64}.run(
    from + m.slot[1 - turn], args.wire[turn] + m.slot[turn]);
}

//! @brief The mean P Q^T in place of the gradient, and what it leaves as residual. `rebuild_splits` blocks have 64 rows.
template <class Codec, class Element, class Context>
TERSUM_BODY void rebuild_matrices(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  constexpr int columns        = Codec::rank;
  int const turn               = turn_of(args);
  std::uint64_t const number   = ctx.block_rank() / rebuild_splits;
  auto const first             = [](matrix_record const& m) { return m.first_rows; };
  std::uint64_t const matrix   = find_matrix(args, number, first);
  matrix_record const& m       = args.matrices[matrix];
  bool const poisoned          = args.poisoned[matrix] != 0;
  bool const keeps             = !step_is_poisoned(args);
  bool const sends_rows        = m.sends_rows(turn);
  float const* const sent      = args.factor[1] + m.slot[turn];
  float const* const other     = args.factor[0] + m.slot[1 - turn];
  int const rank               = static_cast<int>(m.rank);
  std::uint64_t const begin    = (number - first(m)) * 64;
  float* const left            = static_cast<float*>(ctx.shared());
  float* const right           = left + columns * product_stride;
  int const place              = static_cast<int>(ctx.thread_rank()) % 8 * 8;
  int const group              = static_cast<int>(ctx.thread_rank()) / 8;
  std::uint64_t const one_tile = ctx.block_rank() % rebuild_splits * 64;

  load_factor<columns>(ctx, sends_rows ? sent : other, m.rows, rank, begin, left);
  for (std::uint64_t at = one_tile; at < m.columns; at += 64 * rebuild_splits) {
    load_factor<columns>(ctx, sends_rows ? other : sent, m.columns, rank, at, right);
    ctx.sync_block();
    std::uint64_t const column = at + static_cast<unsigned>(place);
    float sum[4][8]            = {};
    for (int k = 0; k < rank; ++k) {
      float q[8];
      load_eight(ctx, right + k * product_stride + place, q);
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        float const p = left[k * product_stride + group + 16 * i];
        TERSUM_UNROLL
        for (int j = 0; j < 8; ++j) { sum[i][j] = Context::fma(p, q[j], sum[i][j]); }
      }
    }
    std::uint64_t first_of[4];
    int count[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      std::uint64_t const row = begin + static_cast<unsigned>(group + 16 * i);
      first_of[i]             = m.offset + row * m.columns + column;
      count[i]                = row < m.rows ? count_of_eight(m.columns, column) : 0;
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        sum[i][j] = poisoned ? Context::from_bits(0x7fc00000u) : Context::add(sum[i][j], 0.0f);
      }
    }
    if constexpr (Codec::feeds_back) {
      if (keeps) {
        float rest[4][8];
        TERSUM_UNROLL
        for (int i = 0; i < 4; ++i) { load_values(ctx, args, first_of[i], count[i], rest[i]); }
        TERSUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          TERSUM_UNROLL
          for (int j = 0; j < 8; ++j) {
            float const mean = Context::value(Context::template element<Element>(sum[i][j]));
            rest[i][j]       = Context::subtract(rest[i][j], mean);
          }
          store_values(ctx, args.residual + first_of[i], count[i], rest[i]);
        }
      }
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) {
      store_values(ctx, args.gradient + first_of[i], count[i], sum[i]);
    }
    ctx.sync_block();
  }
}

}  // namespace tersum::inline v0::detail
