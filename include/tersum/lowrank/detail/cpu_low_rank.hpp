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
#include <tersum/lowrank/detail/factor_args.hpp>
#include <tersum/random/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace tersum::inline v0::detail {

//! @brief What the stages do with matrices and factors. The work is cut by matrix, and into blocks of 64 rows or columns with
//! sums of their own, so that the number of threads does not change a bit.
template <class Codec, class Element>
class cpu_low_rank {
  using wire                 = typename Codec::wire_element;
  using feedback_type        = typename Codec::feedback_type;
  static constexpr int block = low_rank_block;
  // Whether vectors add what was kept: feedback says nothing else of it.
  static constexpr bool adds_kept = has_adds_lost<feedback_type> && !weighs_kept<Codec>;

 public:
  explicit cpu_low_rank(cpu_work<Codec, Element> const& work)
    : threads_(work.threads), set_(work.instructions), args_(work.args)
  {
  }

  //! The turn whose factor this exchange sends last.
  [[nodiscard]] int turn() const { return args_.chunks == 0 ? 1 : turn_of(args_); }

  void for_each_matrix(auto const& work) const
  {
    parallel_for(threads_, args_.chunks, [&](std::uint64_t i) { work(args_.table[i]); });
  }

  //! work(matrix, begin) for each of so many blocks of 64, which belong to the last matrix with first(matrix) <= number.
  void for_each_block(std::uint64_t blocks, auto const& first, auto const& work) const
  {
    std::span<matrix_record const> const all{args_.table, args_.chunks};
    parallel_for(threads_, blocks, [&](std::uint64_t number) {
      matrix_record const& m = *(std::ranges::upper_bound(all, number, {}, first) - 1);
      work(m, (number - first(m)) * block);
    });
  }

  //! Computes the factors of a turn for all matrices, from orthonormal or warm factors of the other turn, to the wire.
  void multiply(int turn, float const* from) const
  {
    auto const first = [turn](matrix_record const& m) { return m.first_block[turn]; };
    for_each_block(
      args_.parts.end.first_block[turn], first, [&](matrix_record const& m, std::uint64_t begin) {
        auto const of_matrix = [&](std::uint64_t at, int count, float* to) {
          load<true>(at, count, to);
        };
        multiply_part(set_, of_matrix, product_of(args_, m, turn, from), begin);
      });
  }

  [[nodiscard]] float kept(std::uint64_t i) const
  {
    return weighed<Codec>(host_group{}, weight_of_kept(args_), args_.residual[i]);
  }

  //! What is approximated, from coordinate `begin` on: the gradient, with what feedback kept.
  template <bool Multiplied>
  void load(std::uint64_t begin, int count, float* to) const
  {
    Element const* const from = args_.gradient + begin;
    auto const size           = static_cast<std::size_t>(count);
    if constexpr (feeds_back<Codec> && !adds_kept) {
      for (std::size_t i = 0; i < size; ++i) {
        float const value = gradient_of<Multiplied, wire>(host_group{}, to_float(from[i]));
        to[i]             = args_.codec.feedback.before(host_group{}, value, kept(begin + i));
      }
    } else if constexpr (adds_kept && !Multiplied) {
      add_residual(set_, from, args_.residual + begin, to, size);
    } else {
      float const above = adds_kept ? 0x1p127f / multiplied_below<wire> * 2 : 1.0f;
      (void)convert_values(set_, from, to, above, size);
      if (adds_kept) { fused_add(set_, 1 / above, to, args_.residual + begin, count, to); }
    }
  }

  //! Keeps what was not sent of so many coordinates.
  void keep(std::uint64_t, int, float const*, float const*) const {}
  void keep(std::uint64_t begin,
            int count,
            float const* whole,
            float const* sent) const requires feeds_back<Codec>
  {
    float* const residual = args_.residual + begin;
    auto const size       = static_cast<std::size_t>(count);
    if (has_adds_lost<feedback_type>) {
      keep_bounded_residual(set_, whole, sent, residual, size);
    } else {
      for (std::size_t i = 0; i < size; ++i) {
        float const rest =
          args_.codec.feedback.after(host_group{}, whole[i], whole[i] - sent[i], kept(begin + i));
        residual[i] = kept_of_matrix(rest);
      }
    }
  }

  //! Fills the columns of the warm start that are zero with random numbers, the same on all ranks. Paired, all get unit length.
  void refresh(matrix_record const& m, int turn, std::uint64_t turns) const
  {
    std::uint64_t const length = m.length(turn);
    float* const values        = args_.parts.warm + m.slot[turn];
    cpu_factor factor{set_, values, length, static_cast<int>(m.rank)};
    for (int k = 0; k < factor.rank(); ++k) {
      double square = factor.dot(k, k);
      if (!(square > zero_below)) {
        std::uint64_t const first = static_cast<unsigned>(k) * length;
        for (std::uint64_t i = first; i < first + length; ++i) {
          values[i] =
            random_start<wide_product>(host_group{}, args_.header->seed, m.slot[turn] + i, turns);
        }
        square = factor.dot(k, k);
      }
      if (agrees<Codec> && square > zero_below) { factor.scale(k, 1.0 / std::sqrt(square)); }
    }
  }

  //! Converts a reduced factor to float, times `share`: what was sent last to `factor[1]`, P before it to `factor[0]`. Returns
  //! whether all of it is finite.
  [[nodiscard]] bool receive(matrix_record const& m, int turn, wire const* from, float share) const
  {
    float* const to = args_.parts.factor[turn == this->turn() ? 1 : 0];
    return convert_values(
      set_, from + m.slot[turn], to + m.slot[turn], share, m.rank * m.length(turn));
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

  //! Writes the mean of 64 rows in place of the gradient, and what it leaves out to the residual.
  void reconstruct(matrix_record const& m, int turn, std::uint64_t begin, bool keeps) const
  {
    int const rows      = static_cast<int>(std::min<std::uint64_t>(block, m.rows - begin));
    bool const poisoned = args_.parts.poisoned[&m - args_.table] != 0;
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
  int threads_;
  instruction_set set_;
  exchange_args<Codec, Element> const& args_;
};

//! Fills header, records and warm start, clears the residual.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::initialize const& stage, cpu_work<Codec, Element> const& work)
{
  auto const& [threads, set, plan, args, numbers] = work;
  *args.header = first_header(args, stage.seed, plan.coordinates(), 0, plan.state_fingerprint());
  args.bypassed.first_gain();
  plan.for_each_record([to = args.records](tensor_record const& r) mutable { *to++ = r; });
  plan.for_each_matrix([to = args.table](matrix_record const& m) mutable { *to++ = m; });
  clear_state(work);
  cpu_low_rank const all{work};
  all.for_each_matrix([&](matrix_record const& m) { all.refresh(m, 1, 0); });
  return {};
}

//! Paired: gradient to P.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::measure, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank{work}.multiply(0, work.args.parts.warm);
  return {};
}

//! What products start from: paired the reduced P, else the warm start.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::orthonormalize, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank const all{work};
  auto const& args = work.args;
  int const before = 1 - all.turn();
  all.for_each_matrix([&](matrix_record const& m) {
    std::uint64_t const count = m.rank * m.length(before);
    float* const values       = args.parts.factor[0] + m.slot[before];
    bool finite               = true;
    if (agrees<Codec>) {
      finite = all.receive(m, before, args.parts.wire[0], 1.0f);
    } else {
      std::copy_n(args.parts.warm + m.slot[before], count, values);
    }
    args.parts.poisoned[&m - args.table] = finite ? 0 : 1;
    if (finite) {
      cpu_factor factor{work.instructions, values, m.length(before), static_cast<int>(m.rank)};
      Codec::low_rank_type::orthogonalizer_type::orthogonalize(factor);
    } else {
      raise_flag(args);
      std::fill_n(values, count, 0.0f);
    }
  });
  return {};
}

//! Gradient to Q or, when alternating, to the factor of the turn.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank const all{work};
  auto const& args = work.args;
  int const now    = all.turn();
  all.multiply(now, args.parts.factor[0]);
  if (agrees<Codec>) { return {}; }
  std::uint64_t const used = args.parts.end.slot[now];
  std::fill_n(
    args.parts.wire[1] + used, args.parts.elements - used, typename Codec::wire_element{});
  return {};
}

template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::receive, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank const all{work};
  auto const& args  = work.args;
  float const share = 1.0f / static_cast<float>(args.world);
  all.for_each_matrix([&](matrix_record const& m) {
    if (!all.receive(m, all.turn(), args.parts.wire[1], share)) {
      args.parts.poisoned[&m - args.table] = 1;
      raise_flag(args);
    }
  });
  return {};
}

//! Factors to gradient and residual.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank const all{work};
  bool const keeps = feeds_back<Codec> && !step_is_poisoned(work.args);
  all.for_each_block(
    work.args.parts.end.first_rows,
    [](matrix_record const& m) { return m.first_rows; },
    [&, turn = all.turn()](matrix_record const& m, std::uint64_t begin) {
      all.reconstruct(m, turn, begin, keeps);
    });
  return {};
}

//! Reduced factor to warm start, and the next step.
template <is_low_rank Codec, class Element>
[[nodiscard]] status run_stage(stage::finish, cpu_work<Codec, Element> const& work)
{
  cpu_low_rank const all{work};
  auto const& args = work.args;
  int const now    = all.turn();
  if (!step_is_poisoned(args)) {
    all.for_each_matrix([&](matrix_record& m) {
      std::copy_n(
        args.parts.factor[1] + m.slot[now], m.rank * m.length(now), args.parts.warm + m.slot[now]);
      ++m.turns;
      all.refresh(m, now, m.turns);
    });
  }
  end_step(args);
  return {};
}

}  // namespace tersum::inline v0::detail
