// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange of low-rank factors on the CPU.

#pragma once

#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>
#include <tersum/lowrank/detail/cpu_low_rank_kernels.hpp>
#include <tersum/lowrank/detail/cpu_products.hpp>
#include <tersum/lowrank/detail/low_rank_args.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/random/philox.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace tersum::inline v0::detail {

//! @brief The stages on `threads` threads with one instruction set. The work is cut by matrix, and into blocks of 64 rows or
//! columns with sums of their own, so that the number of threads does not change a bit.
template <class LowRank,
          class Wire,
          low_rank_schedule Schedule,
          class Feedback,
          class Metric,
          class Element>
class cpu_stages<low_rank_codec<LowRank, Wire, Schedule, Feedback, Metric>, Element> {
 public:
  using codec_type = low_rank_codec<LowRank, Wire, Schedule, Feedback, Metric>;
  using args_type  = exchange_args<codec_type, Element>;

  cpu_stages(int threads, instruction_set set, args_type const& args)
    : threads_(threads), set_(set), args_(args)
  {
  }

  //! Fills header, records and warm start, clears the residual.
  void initialize(plan<codec_type> const& plan, std::uint64_t seed) const;

  //! In a diagonal metric: the largest scale of each matrix.
  void find_largest_scales() const;

  //! Paired: gradient to P.
  void measure() const { multiply(0, args_.warm); }

  //! What products start from: paired the reduced P, else the warm start.
  void orthonormalize() const;

  //! Gradient to Q or, when alternating, to the factor of the turn.
  void encode() const;

  //! Reduced factor to gradient, residual and warm start.
  void decode() const;

  //! Bypassing tensors to the wire and back, as a codec that only converts does it.
  void encode_bypass() const;
  void decode_bypass() const;

  //! Advances the step.
  void finish() const { args_.header->step = args_.header->step + 1; }

 private:
  static constexpr int block   = low_rank_block;
  static constexpr bool paired = Schedule == low_rank_schedule::paired;

  //! The turn whose factor this exchange sends last.
  [[nodiscard]] int turn() const
  {
    if (paired || args_.chunks == 0) { return 1; }
    return static_cast<int>(args_.matrices[0].turns % 2);
  }

  // The matrix that a block belongs to: the last one with first(matrix) <= number.
  template <class First>
  [[nodiscard]] matrix_record const& matrix_of(std::uint64_t number, First const& first) const
  {
    std::span<matrix_record const> const all{args_.matrices, args_.chunks};
    auto const after = std::ranges::upper_bound(all, number, {}, first);
    return *(after - 1);
  }

  // Computes the factors of a turn for all matrices, from the orthonormal or warm factors of the other turn, and writes
  // them to the wire.
  void orthonormalize_sum() const;
  void orthonormalize_warm() const;
  void multiply(int turn, float const* from) const;

  [[nodiscard]] float kept(std::uint64_t i) const
  {
    return weighed<codec_type>(host_group{}, weight_of_kept(args_), args_.residual[i]);
  }

  // What is approximated, from coordinate `begin` on: the gradient, with what feedback kept.
  template <bool Multiplied>
  void load(std::uint64_t begin, int count, float* to) const;

  // The same in units of the metric.
  void load_scaled(float least, std::uint64_t begin, int count, float* to) const;

  // What the scales of a matrix are raised to.
  [[nodiscard]] float least_scale_of(matrix_record const& m) const;

  // The scale of all coordinates of a matrix after its first mean; below 0 where scales are known.
  [[nodiscard]] float first_scale_of(matrix_record const& m, int turn) const;

  // Scales that the library keeps follow means in units of the metric, where `first` is below 0.
  void follow(std::uint64_t begin, int count, float const* means, float least, float first) const;

  // Keeps what was not sent of so many coordinates.
  void keep(std::uint64_t begin, int count, float const* whole, float const* sent) const;

  // Converts a factor on the wire to float, times `share`. Returns whether all of it is finite.
  [[nodiscard]] bool receive(
    matrix_record const& m, int turn, Wire const* wire, float share, float* factor) const;

  // The product of 64 rows from `begin` and 64 columns from `at`; `sent` is the factor of the turn.
  void rebuild(matrix_record const& m,
               int turn,
               float const* sent,
               std::uint64_t begin,
               std::uint64_t at,
               float* product) const;
  void reconstruct(matrix_record const& m, int turn, std::uint64_t begin, bool keeps) const;
  void keep_warm(matrix_record& m, int turn) const;
  void refresh(matrix_record const& m, int turn, std::uint64_t turns, bool normalize) const;

  [[nodiscard]] exchange_args<floats_in_wire, Element> bypass_args() const;

  int threads_;
  instruction_set set_;
  args_type const& args_;
};

template <class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::orthonormalize, cpu_work<Codec, Element> const& work)
{
  work.stages().orthonormalize();
  return {};
}

template <class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::prepare_metric, cpu_work<Codec, Element> const& work)
{
  work.stages().find_largest_scales();
  return {};
}

}  // namespace tersum::inline v0::detail

#include <tersum/lowrank/detail/cpu_low_rank.ipp>
