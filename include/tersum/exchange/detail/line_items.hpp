// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The rows and columns of tensors under a factored metric: where they lie, and how they follow what was decoded. Items of
//! `executor::each`, the same on the CPU and in kernels.

#pragma once

#include <tersum/block/group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/metric/detail/line_piece.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Some tensors, passed by value so that no memory has to outlive a launch.
struct piece_batch {
  static constexpr unsigned capacity = 24;

  line_piece pieces[capacity];
  std::uint64_t ends[capacity];  //!< Items of a tensor and of those before it.
  unsigned count;

  //! Numbers the items of all tensors. Returns how many there are.
  template <class Item>
  std::uint64_t number()
  {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < count; ++i) { ends[i] = sum += Item::items(pieces[i]); }
    return sum;
  }
  //! The tensor of an item, which becomes the number of the item in it.
  [[nodiscard]] TERSUM_INLINE line_piece const& find(std::uint64_t& item) const
  {
    unsigned at = 0;
    while (at + 1 < count && item >= ends[at]) { ++at; }
    if (at > 0) { item -= ends[at - 1]; }
    return pieces[at];
  }
};

//! What items of lines have in common.
template <class Codec, class Element>
struct line_item {
  exchange_args<Codec, Element> args;
  piece_batch batch;
};

//! @brief Divides a column by the whole, or finds where a chunk lies among rows and columns. A tensor of which nothing is known has
//! shares of 0.
template <class Codec, class Element>
struct prepare_lines : line_item<Codec, Element> {
  [[nodiscard]] TERSUM_INLINE static std::uint64_t items(line_piece const& piece)
  {
    return piece.columns + line_piece::divide_up(piece.size, Codec::chunk_size);
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::uint64_t item) const
  {
    line_piece const& piece = this->batch.find(item);
    if (item < piece.columns) {
      float const* const columns = this->args.metric.lines + piece.first_line + piece.rows();
      float const whole          = memory.load(columns + piece.columns);
      float const share =
        this->args.codec.metric.share(host_group{}, memory.load(columns + item), whole);
      memory.store(this->args.metric.shares + piece.first_share + item, whole > 0 ? share : 0.0f);
    } else {
      std::uint64_t const chunk = item - piece.columns;
      chunk_lines const lines   = chunk_lines::of(piece, chunk * Codec::chunk_size);
      word4* const to           = this->args.metric.chunks + 2 * (piece.first_chunk + chunk);
      memory.store(to, lines.low());
      memory.store(to + 1, lines.high());
    }
  }
};

//! @brief Adds the squares of a stretch of a row, or of a stretch of eight columns, as `line_tile` says: for tensors of few columns,
//! which tiles would not fill.
template <class Codec, class Element>
struct add_line_squares : line_item<Codec, Element> {
  [[nodiscard]] TERSUM_INLINE static std::uint64_t items(line_piece const& piece)
  {
    return piece.rows() * piece.row_parts() + piece.column_groups() * piece.column_parts();
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::uint64_t item) const
  {
    line_piece const& piece = this->batch.find(item);
    of_piece(memory, this->args, piece, item);
  }

  //! An item of one tensor.
  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE static void of_piece(Memory const& memory,
                                          exchange_args<Codec, Element> const& args,
                                          line_piece const& piece,
                                          std::uint64_t item)
  {
    std::uint64_t const row_items = piece.rows() * piece.row_parts();
    if (item < row_items) {
      of_row(memory, args, piece, item);
    } else {
      of_columns(memory, args, piece, item - row_items);
    }
  }

 private:
  //! The square is exact, so that no contraction changes the sum.
  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE static void add(Memory const& memory, Element const* from, double& sum)
  {
    double const value = to_float(memory.load(from));
    sum                = add_product(value, value, sum);
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE static void of_row(Memory const& memory,
                                        exchange_args<Codec, Element> const& args,
                                        line_piece const& piece,
                                        std::uint64_t item)
  {
    std::uint64_t const row   = item / piece.row_parts();
    std::uint64_t const begin = item % piece.row_parts() * piece.row_stretch;
    std::uint64_t const end   = minimum(begin + piece.row_stretch, piece.columns);
    Element const* const from = args.gradient + piece.offset;
    std::uint64_t const first = maximum(begin, row == 0 ? piece.skip : 0);
    std::uint64_t const last  = minimum(end, piece.skip + piece.size - row * piece.columns);
    double sums[8]            = {};
    std::uint64_t j           = begin;
    if (first == begin) {
      for (; j + 8 <= last && j + 8 <= end; j += 8) {
        TERSUM_UNROLL
        for (unsigned k = 0; k < 8; ++k) {
          add(memory, from + (row * piece.columns + j + k - piece.skip), sums[k]);
        }
      }
    }
    for (; j < end; j += 8) {
      for (unsigned k = 0; k < 8; ++k) {
        if (j + k >= first && j + k < last) {
          add(memory, from + (row * piece.columns + j + k - piece.skip), sums[k]);
        }
      }
    }
    TERSUM_UNROLL
    for (int half_of = 4; half_of > 0; half_of /= 2) {
      TERSUM_UNROLL
      for (int k = 0; k < half_of; ++k) { sums[k] = sums[k] + sums[k + half_of]; }
    }
    memory.store(args.metric.sums + piece.first_sum + 2 + item, sums[0]);
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE static void of_columns(Memory const& memory,
                                            exchange_args<Codec, Element> const& args,
                                            line_piece const& piece,
                                            std::uint64_t item)
  {
    std::uint64_t const column = item % piece.column_groups() * 8;
    std::uint64_t const part   = item / piece.column_groups();
    std::uint64_t const begin  = part * piece.column_stretch;
    std::uint64_t const end    = minimum(begin + piece.column_stretch, piece.rows());
    Element const* const from  = args.gradient + piece.offset;
    double sums[8]             = {};
    std::uint64_t const stop   = piece.skip + piece.size;
    bool const whole           = column + 8 <= piece.columns &&
                       begin * piece.columns + column >= piece.skip &&
                       (end - 1) * piece.columns + column + 8 <= stop;
    for (std::uint64_t row = begin; row < end; ++row) {
      std::uint64_t const at = row * piece.columns + column;
      if (whole) {
        TERSUM_UNROLL
        for (unsigned k = 0; k < 8; ++k) { add(memory, from + (at + k - piece.skip), sums[k]); }
      } else {
        for (unsigned k = 0; k < 8; ++k) {
          if (column + k < piece.columns && at + k >= piece.skip && at + k < stop) {
            add(memory, from + (at + k - piece.skip), sums[k]);
          }
        }
      }
    }
    double* const to = args.metric.sums + piece.first_column_sum() + part * piece.columns + column;
    TERSUM_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
      if (column + k < piece.columns) { memory.store(to + k, sums[k]); }
    }
  }
};

//! @brief Adds the stretches of a line, in ascending order; the sum takes the place of the first.
template <class Codec, class Element>
struct add_stretches : line_item<Codec, Element> {
  [[nodiscard]] TERSUM_INLINE static std::uint64_t items(line_piece const& piece)
  {
    return piece.rows() + piece.columns;
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::uint64_t item) const
  {
    line_piece const& piece   = this->batch.find(item);
    bool const of_row         = item < piece.rows();
    double* const sums        = this->args.metric.sums + piece.sum_of_line(item);
    std::uint64_t const count = of_row ? piece.row_parts() : piece.column_parts();
    std::uint64_t const apart = of_row ? 1 : piece.columns;
    double sum                = memory.load(sums);
    for (std::uint64_t i = 1; i < count; ++i) { sum = sum + memory.load(sums + i * apart); }
    memory.store(sums, sum);
  }
};

//! @brief The mean square of a tensor, from its rows or its columns, whichever are fewer, and what its root was before.
template <class Codec, class Element>
struct add_lines : line_item<Codec, Element> {
  [[nodiscard]] TERSUM_INLINE static std::uint64_t items(line_piece const&) { return 1; }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::uint64_t item) const
  {
    line_piece const& piece   = this->batch.find(item);
    bool const of_rows        = piece.rows() < piece.columns;
    std::uint64_t const first = of_rows ? 0 : piece.rows();
    std::uint64_t const count = of_rows ? piece.rows() : piece.columns;
    double sum                = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      sum = sum + memory.load(this->args.metric.sums + piece.sum_of_line(first + i));
    }
    double* const to    = this->args.metric.sums + piece.first_sum;
    double const before = static_cast<double>(
      memory.load(this->args.metric.lines + piece.first_line + piece.rows() + piece.columns));
    double square = sum / static_cast<double>(piece.size);
    if constexpr (casts<Codec> && agrees<Codec>) {
      if (sum == 0 && before == 0) { square = square_of_norms(memory, piece); }
    }
    memory.store(to, square);
    memory.store(to + 1, before);
  }

 private:
  //! The mean square that the mean would have if the ranks' gradients were independent, from the norms that they agreed on: where
  //! nothing of a tensor has ever travelled, as `first_square` of a chunk. Of `at_most` chunks, evenly apart.
  template <class Memory>
  [[nodiscard]] TERSUM_HOST_DEVICE double square_of_norms(Memory const& memory,
                                                          line_piece const& piece) const
  {
    if (!has_agreed(this->args)) { return 0; }
    using scalar                    = typename Codec::norm_scalar;
    constexpr std::uint64_t at_most = 256, size = Codec::chunk_size;
    auto const* const agreed   = static_cast<scalar const*>(this->args.agreed) + piece.first_chunk;
    std::uint64_t const chunks = line_piece::divide_up(piece.size, size);
    std::uint64_t const apart  = line_piece::divide_up(chunks, at_most);
    auto const world           = static_cast<double>(this->args.world);
    double norms               = 0;
    std::uint64_t coordinates  = 0;
    for (std::uint64_t chunk = 0; chunk < chunks; chunk += apart) {
      norms = norms + static_cast<double>(to_float(memory.load(agreed + chunk)));
      coordinates += minimum(size, piece.size - chunk * size);
    }
    return norms / world / world / static_cast<double>(coordinates);
  }
};

//! @brief A line of the next step.
template <class Codec, class Element>
struct follow_lines : line_item<Codec, Element> {
  [[nodiscard]] TERSUM_INLINE static std::uint64_t items(line_piece const& piece)
  {
    return piece.lines();
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::uint64_t item) const
  {
    if (step_is_poisoned(this->args)) { return; }
    line_piece const& piece    = this->batch.find(item);
    double const* const sums   = this->args.metric.sums;
    double const whole         = memory.load(sums + piece.first_sum);
    double const before        = memory.load(sums + piece.first_sum + 1);
    float* const line          = this->args.metric.lines + piece.first_line + item;
    std::uint64_t const length = piece.length(item);
    double square              = whole;
    if (item < piece.rows() + piece.columns) {
      square =
        length > 0 ? memory.load(sums + piece.sum_of_line(item)) / static_cast<double>(length) : 0;
    }
    float const start = static_cast<float>(::sqrt(whole));
    float const kept  = before > 0 ? memory.load(line) : start;
    float const next  = this->args.codec.metric.follow(
      square, kept, maximum(length, std::uint64_t{1}), this->args.header->step);
    if (is_finite(next)) { memory.store(line, next); }
  }
};

struct every_piece {
  [[nodiscard]] bool operator()(line_piece const&) const { return true; }
};

//! @brief Items of lines of all tensors of a plan: run(item, count), for up to 24 tensors at a time.
//! @param has  Whether a tensor has any.
template <class Item, class Work, class Run, class Has = every_piece>
void each_batch(Work const& plan, auto const& args, Run const& run, Has const& has = {})
{
  Item item{{args, {}}};
  auto const flush = [&] {
    if (item.batch.count > 0) { run(item, item.batch.template number<Item>()); }
    item.batch.count = 0;
  };
  plan.for_each_piece([&](line_piece const& piece) {
    if (!has(piece)) { return; }
    item.batch.pieces[item.batch.count++] = piece;
    if (item.batch.count == piece_batch::capacity) { flush(); }
  });
  flush();
}

//! The items that follow what was decoded when the squares of stretches are added, in their order.
template <class Codec, class Element>
void follow_means(plan<Codec> const& plan,
                  exchange_args<Codec, Element> const& args,
                  auto const& run)
{
  each_batch<add_stretches<Codec, Element>>(plan, args, run);
  each_batch<add_lines<Codec, Element>>(plan, args, run);
  each_batch<follow_lines<Codec, Element>>(plan, args, run);
}

}  // namespace tersum::inline v0::detail
