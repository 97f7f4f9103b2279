// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange of low-rank factors on the CPU.

#pragma once

#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>
#include <tersum/lowrank/detail/factor_stages.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

//! The turn whose factor this exchange sends last, where there may be no matrix.
template <class Codec, class Element>
[[nodiscard]] int last_turn(exchange_args<Codec, Element> const& args)
{
  return args.chunks == 0 ? 1 : turn_of(args);
}

//! @brief Calls body(hand, i) for so many matrices, or blocks of 64 rows or columns.
template <class Codec, class Element, class Body>
void each_in_hand(cpu_work<Codec, Element> const& work, std::uint64_t count, Body const& body)
{
  parallel_for(work.threads, count, [set = work.instructions, &body](std::uint64_t i) {
    body(host_hand{set}, i);
  });
}

//! @brief What the stages do with matrices. The work is cut by matrix, and into blocks of 64 rows or columns with sums of their
//! own, so that the number of threads does not change a bit.
template <class Codec, class Element>
class cpu_low_rank {
  using wire                 = typename Codec::quantizer_type::element;
  static constexpr int block = low_rank_block;
  // Whether vectors add what was kept: feedback says nothing else of it.
  static constexpr bool adds_kept =
    has_adds_lost<typename Codec::feedback_type> && !weighs_kept<Codec>;

 public:
  explicit cpu_low_rank(cpu_work<Codec, Element> const& work)
    : set_(work.instructions), args_(work.args)
  {
  }

  //! @brief 64 rows or columns of the products of a turn, from orthonormal or warm factors of the other turn, to the wire; the sums of
  //! their slices are added one after the other.
  void multiply(int turn, float const* from, std::uint64_t number) const
  {
    auto const first         = [turn](matrix_record const& m) { return m.first_block[turn]; };
    matrix_record const& m   = args_.table[find_matrix(args_, number, first)];
    auto const slices        = m.slices(turn);
    int const rank           = static_cast<int>(m.rank);
    std::uint64_t const size = m.length(turn), begin = (number - first(m)) * block;
    int const lanes = static_cast<int>(std::min<std::uint64_t>(block, size - begin));
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
      load_tile(m, m.sends_rows(turn), begin, lanes, at, terms, tile);
      multiply_block(set_, from + m.slot[1 - turn] + at, slices.terms, 1u, rank, terms, tile, sums);
    }
    end_slice();
    float const largest = args_.parts.largest;
    for (int k = 0; k < rank; ++k) {
      wire* const column =
        args_.parts.wire[turn] + m.slot[turn] + static_cast<unsigned>(k) * size + begin;
      for (int i = 0; i < lanes; ++i) {
        column[i] = from_float<wire>(sent_of_product<wire>(earlier[k * block + i], largest));
      }
    }
  }

  //! Writes the mean of 64 rows in place of the gradient, and what it leaves out to the residual.
  void reconstruct(int turn, std::uint64_t number, bool keeps) const
  {
    auto const first       = [](matrix_record const& m) { return m.first_rows; };
    auto const matrix      = find_matrix(args_, number, first);
    matrix_record const& m = args_.table[matrix];
    std::uint64_t begin    = (number - first(m)) * block;
    int const rows         = static_cast<int>(std::min<std::uint64_t>(block, m.rows - begin));
    bool const poisoned    = args_.parts.poisoned[matrix] != 0;
    alignas(64) float product[block * block];
    alignas(64) float whole[block];
    for (std::uint64_t at = 0; at < m.columns; at += block) {
      int const lanes = static_cast<int>(std::min<std::uint64_t>(block, m.columns - at));
      if (poisoned) {
        std::fill_n(product, rows * block, std::numeric_limits<float>::quiet_NaN());
      } else {
        rebuild(m, turn, begin, at, product);
      }
      for (int row = 0; row < rows; ++row) {
        std::uint64_t const first =
          m.offset + (begin + static_cast<unsigned>(row)) * m.columns + at;
        Element* const to = args_.gradient + first;
        float* const mean = product + row * block;
        if (keeps) { load<false>(first, lanes, whole); }
        for (int i = 0; i < lanes; ++i) {
          to[i]   = finite_from_float<Element>(mean[i]);
          mean[i] = to_float(to[i]);
        }
        if (keeps) { keep(first, lanes, whole, mean); }
      }
    }
  }

 private:
  //! @brief tile[t][lane], of 64 lanes: a block of a matrix whose lanes are the rows or columns that a product takes at once.
  void load_tile(matrix_record const& m,
                 bool turns,
                 std::uint64_t begin,
                 int lanes,
                 std::uint64_t at,
                 int terms,
                 float* tile) const
  {
    alignas(64) float turned[block * block];
    float* const to    = turns ? turned : tile;
    int const count    = turns ? terms : lanes;
    std::uint64_t from = m.offset + (turns ? begin * m.columns + at : at * m.columns + begin);
    if (lanes < block || (turns && terms < block)) {
      std::fill_n(to, block * (turns ? block : terms), 0.0f);
    }
    for (int row = 0; row < (turns ? lanes : terms); ++row, from += m.columns) {
      load<true>(from, count, to + row * block);
    }
    if (turns) { transpose_block(set_, turned, tile); }
  }

  //! What is approximated, from coordinate `begin` on: the gradient, with what feedback kept.
  template <bool Multiplied>
  void load(std::uint64_t begin, int count, float* to) const
  {
    auto const* const from  = args_.gradient + begin;
    auto const size         = static_cast<std::size_t>(count);
    float const* const kept = feeds_back<Codec> ? args_.residual + begin : nullptr;
    if (adds_kept && !Multiplied) {
      add_residual(set_, from, kept, to, size);
      return;
    }
    float const above = adds_kept ? 0x1p127f / multiplied_below<wire> * 2 : 1.0f;
    (void)convert_values(set_, from, to, above, size);
    if (adds_kept) {
      fused_add(set_, 1 / above, to, kept, count, to);
    } else if (feeds_back<Codec>) {
      for (std::size_t i = 0; i < size; ++i) {
        to[i] = element_of_matrix<Multiplied>(host_group{}, args_, to[i], kept[i]);
      }
    }
  }

  //! Keeps what was not sent of so many coordinates.
  void keep(std::uint64_t begin, int count, float const* whole, float const* sent) const
  {
    float* const residual = args_.residual + begin;
    auto const size       = static_cast<std::size_t>(count);
    if (has_adds_lost<typename Codec::feedback_type>) {
      keep_bounded_residual(set_, whole, sent, residual, size);
    } else {
      for (std::size_t i = 0; i < size; ++i) {
        residual[i] = rest_of_matrix(host_group{}, args_, whole[i], sent[i], residual[i]);
      }
    }
  }

  //! The product of 64 rows from `begin` and 64 columns from `at`.
  void rebuild(
    matrix_record const& m, int turn, std::uint64_t begin, std::uint64_t at, float* product) const
  {
    int const rows     = static_cast<int>(std::min<std::uint64_t>(block, m.rows - begin));
    int const lanes    = static_cast<int>(std::min<std::uint64_t>(block, m.columns - at));
    int const rank     = static_cast<int>(m.rank);
    float const* now   = args_.parts.factor[1] + m.slot[turn];
    float const* other = args_.parts.factor[0] + m.slot[1 - turn];
    float const* left  = m.sends_rows(turn) ? now : other;
    float const* right = m.sends_rows(turn) ? other : now;
    alignas(64) float tile[max_rank * block];
    for (int k = 0; k < rank; ++k) {
      float* const end =
        std::copy_n(right + static_cast<unsigned>(k) * m.columns + at, lanes, tile + k * block);
      std::fill(end, tile + (k + 1) * block, 0.0f);
    }
    std::fill_n(product, rows * block, 0.0f);
    multiply_block(set_, left + begin, 1u, m.rows, rows, rank, tile, product);
  }

  instruction_set set_;
  exchange_args<Codec, Element> const& args_;
};

//! Fills header, records and warm start, clears the residual.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::initialize const& stage, cpu_work<Codec, Element> const& work)
{
  auto const& plan = work.plan;
  auto const& args = work.args;
  *args.header = first_header(args, stage.seed, plan.coordinates(), 0, plan.state_fingerprint());
  args.bypassed.first_gain();
  plan.for_each_record([to = args.records](tensor_record const& r) mutable { *to++ = r; });
  plan.for_each_matrix([to = args.table](matrix_record const& m) mutable { *to++ = m; });
  clear_state(work);
  each_in_hand(work, args.chunks, [&](host_hand const& hand, std::uint64_t i) {
    refresh_warm(hand, args, args.table[i], 1, 0);
  });
  return {};
}

//! Computes the factors of a turn.
template <class Codec, class Element>
void multiply_all_matrices(cpu_work<Codec, Element> const& work, int turn, float const* from)
{
  cpu_low_rank const all{work};
  each_in_hand(work, work.args.parts.end.first_block[turn], [&](auto const&, std::uint64_t i) {
    all.multiply(turn, from, i);
  });
}

//! Paired: gradient to P.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::measure, cpu_work<Codec, Element> const& work)
{
  multiply_all_matrices(work, 0, work.args.parts.warm);
  return {};
}

//! What products start from: paired the reduced P, else the warm start.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::orthonormalize, cpu_work<Codec, Element> const& work)
{
  auto const& args = work.args;
  int const before = 1 - last_turn(args);
  each_in_hand(work, args.chunks, [&](host_hand const& hand, std::uint64_t i) {
    matrix_record const& m    = args.table[i];
    std::uint64_t const count = m.rank * m.length(before);
    float* const values       = args.parts.factor[0] + m.slot[before];
    args.parts.poisoned[i]    = 0;
    if (!agrees<Codec>) {
      std::copy_n(args.parts.warm + m.slot[before], count, values);
    } else if (!convert_values(
                 hand.set, args.parts.wire[0] + m.slot[before], values, 1.0f, count)) {
      poison(args, i);
      std::fill_n(values, count, 0.0f);
      return;
    }
    cpu_factor factor{hand.set, values, m.length(before), static_cast<int>(m.rank)};
    Codec::low_rank_type::orthogonalizer_type::orthogonalize(factor);
  });
  return {};
}

//! Gradient to Q or, when alternating, to the factor of the turn.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  auto const& parts = work.args.parts;
  int const now     = last_turn(work.args);
  multiply_all_matrices(work, now, parts.factor[0]);
  if (!agrees<Codec>) {
    std::fill(parts.wire[1] + parts.end.slot[now],
              parts.wire[1] + parts.elements,
              typename Codec::quantizer_type::element{});
  }
  return {};
}

template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::receive, cpu_work<Codec, Element> const& work)
{
  auto const& args  = work.args;
  int const turn    = last_turn(args);
  float const share = 1.0f / static_cast<float>(args.world);
  each_in_hand(work, args.chunks, [&](host_hand const& hand, std::uint64_t i) {
    matrix_record const& m = args.table[i];
    bool const finite      = convert_values(hand.set,
                                       args.parts.wire[1] + m.slot[turn],
                                       args.parts.factor[1] + m.slot[turn],
                                       share,
                                       m.rank * m.length(turn));
    if (!finite) { poison(args, i); }
  });
  return {};
}

//! Factors to gradient and residual.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank const all{work};
  bool const keeps = feeds_back<Codec> && !step_is_poisoned(work.args);
  int const turn   = last_turn(work.args);
  each_in_hand(work, work.args.parts.end.first_rows, [&](auto const&, std::uint64_t i) {
    all.reconstruct(turn, i, keeps);
  });
  return {};
}

//! Reduced factor to warm start, and the next step.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::finish, cpu_work<Codec, Element> const& work)
{
  each_in_hand(work, work.args.chunks, [&](host_hand const& hand, std::uint64_t i) {
    keep_warm(hand, work.args, work.args.table[i]);
  });
  end_step(work.args);
  return {};
}

}  // namespace tersum::inline v0::detail
