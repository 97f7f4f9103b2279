// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kernel of an exchange of factors is given: pointers into the caller's memory.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/kernel_args.hpp>
#include <tersum/lowrank/low_rank.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Magnitudes from which feedback takes a gradient for one that is not finite when its matrix is multiplied.
//!
//! Each rank keeps its gradient without the mean of all, so that what one has alone stays in the residuals of all of them, and
//! cancels there up to rounding. None may be cut by itself, therefore, and none ever has to be.
template <class Wire>
inline constexpr float multiplied_below = minimum(sendable_below<Wire>, 0x1p40f);

//! @brief A gradient as feedback is given it: the same to the last bit; where it is multiplied infinity from there on.
template <bool Multiplied, class Wire, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float gradient_of(Arithmetic const&, float value)
{
  constexpr float limit = multiplied_below<Wire>;
  float const above     = Arithmetic::multiply(value, 0x1p127f / limit * 2);
  return Multiplied ? Arithmetic::multiply(above, limit * 0x1p-128f) : value;
}

//! @brief What kernels of factors are given of a metric.
template <class Metric>
struct matrix_scales : kept_scales<Metric> {
  constexpr void take_largest(section_list&, std::uint64_t) noexcept {}
};
template <class Metric>
requires(Metric::scaled) struct matrix_scales<Metric> : kept_scales<Metric> {
  std::uint32_t* largest;  // one a matrix: the bits of its largest scale

  constexpr void take_largest(section_list& work, std::uint64_t matrices) noexcept
  {
    largest = work.take<std::uint32_t>("largest_scales", matrices);
  }
};

//! @brief The part of a codec that its metric is.
template <class Metric>
struct metric_of_codec {
  Metric metric;
};

//! @brief Arguments of one rank's kernels. Factors lie column after column, matrix after matrix.
template <class LowRank,
          class Wire,
          low_rank_schedule Schedule,
          class Feedback,
          class Metric,
          class Element>
struct exchange_args<low_rank_codec<LowRank, Wire, Schedule, Feedback, Metric>, Element> {
  Element* gradient;  // plan.coordinates() values, in and out
  state_header* header;
  tensor_record* records;   // header->tensors
  matrix_record* matrices;  // header->chunks
  float* warm;              // what the next exchange starts from
  float* residual;          // plan.coordinates() values, or null
  std::uint32_t* poisoned;  // one a matrix: whether a reduced factor is not finite
  Wire* wire[2];            // P and Q; both the payload when alternating
  float*
    factor[2];      // P and Q in float; if alternating, what the turn starts from and what it sends
  float* partials;  // sums of slices
  float* bypass;    // bypassed values
  std::uint64_t elements;  // of the payload
  std::uint64_t chunks;
  std::uint64_t tensors;
  std::uint64_t blocks[2];
  std::uint64_t products[2];  // thread blocks of products
  std::uint64_t row_blocks;
  int world;
  float largest;  // of what feedback sends as a 16-bit factor: see largest_summand
  Feedback feedback;
  std::
    conditional_t<Feedback::enabled && has_kept_weight<Feedback>, weighed_feedback, steady_feedback>
      bypassed;
  // Without a metric these two lie where nothing else does.
  matrix_scales<Metric> metric;
  metric_of_codec<Metric> codec;
};

}  // namespace tersum::inline v0::detail
