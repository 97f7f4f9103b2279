// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kernel of an exchange of factors is given: pointers into the caller's memory.

#pragma once

#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/lowrank/low_rank.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

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

//! @brief What kernels of factors in the units of a diagonal metric are given besides.
struct diagonal_args {
  float* scales;           // plan.coordinates() values
  std::uint32_t* largest;  // one a matrix: the bits of its largest scale
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
  std::conditional_t<Feedback::enabled && has_kept_weight<Feedback>, weighed_args, nothing>
    bypassed;
  // Without a metric these two lie where nothing else does.
  std::conditional_t<Metric::scaled, diagonal_args, nothing> metric;
  std::conditional_t<Metric::scaled, metric_of_codec<Metric>, nothing> codec;
};

template <class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] exchange_args<Codec, Element> make_args(plan<Codec> const& plan,
                                                      Element* gradient,
                                                      std::span<std::byte> state,
                                                      std::span<std::byte> workspace) noexcept
{
  using wire              = typename Codec::wire_element;
  std::size_t const first = agrees<Codec> ? plan.agreed_offset() : plan.payload_offset();
  exchange_args<Codec, Element> args{
    .gradient = gradient,
    .header   = place_in<state_header>(state, 0),
    .records  = place_in<tensor_record>(state, plan.records_offset()),
    .matrices = place_in<matrix_record>(state, plan.table_offset()),
    .warm     = place_in<float>(state, plan.warm_offset()),
    .residual = feeds_back<Codec> ? place_in<float>(state, plan.residual_offset()) : nullptr,
    .poisoned = place_in<std::uint32_t>(workspace, 0),
    .wire   = {place_in<wire>(workspace, first), place_in<wire>(workspace, plan.payload_offset())},
    .factor = {place_in<float>(workspace, plan.factor_offset(0)),
               place_in<float>(workspace, plan.factor_offset(1))},
    .partials   = place_in<float>(workspace, plan.slice_sums_offset()),
    .bypass     = place_in<float>(workspace, plan.bypass_offset()),
    .elements   = plan.factor_elements(1),
    .chunks     = plan.chunks(),
    .tensors    = plan.tensors(),
    .blocks     = {plan.blocks(0), plan.blocks(1)},
    .products   = {plan.product_blocks(0), plan.product_blocks(1)},
    .row_blocks = plan.row_blocks(),
    .world      = plan.ranks().size,
    .largest    = feeds_back<Codec> ? largest_summand<wire>(plan.ranks().size)
                                    : std::numeric_limits<float>::infinity(),
    .feedback   = plan.codec().feedback,
    .bypassed   = {},
    .metric     = {},
    .codec      = {}};
  if constexpr (weighs_kept<Codec>) {
    args.bypassed.gain = place_in<float>(state, plan.gain_offset());
  }
  if constexpr (in_metric<Codec>) {
    std::size_t const largest = plan.workspace_sections().offset(section::largest_scales);
    args.codec.metric         = plan.codec().metric;
    args.metric               = {.scales  = place_in<float>(state, plan.scales_offset()),
                                 .largest = place_in<std::uint32_t>(workspace, largest)};
  }
  return args;
}

}  // namespace tersum::inline v0::detail
