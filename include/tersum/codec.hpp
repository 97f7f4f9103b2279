// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec: policies composed. It knows no executor and no transport.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/packed_codes.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/rotate/full_hadamard.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <concepts>
#include <type_traits>

namespace tersum::inline v0 {

template <class Codec>
class plan;

//! @brief Chunks, rotates, agrees on a range, quantizes, packs; the reducer says how the payload sums.
//!
//! A value: run-time parameters of its policies are data members. Rounds of an exchange: the agreed scalars, the packed
//! codes, and the coordinates that bypass the codec, if any.
//!
//! @tparam Chunker    `fixed_chunks<C>`.
//! @tparam Rotator    `partial_hadamard<C>`, `tensor_core_hadamard<C>`, `no_rotation` or `full_hadamard`.
//! @tparam Range      `rms_range`, `absmax_range` or `global_range`.
//! @tparam Quantizer  `stochastic_quantizer<q>`, `nearest_quantizer<q>`, or one of your own.
//! @tparam Reducer    `saturating_sum<b>`, `widening_sum<q, b>` or `guard_lanes<b>`.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
template <chunker Chunker,
          rotator Rotator,
          range Range,
          quantizer Quantizer,
          reducer Reducer,
          feedback Feedback = no_feedback>
struct codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using range_type     = Range;
  using quantizer_type = Quantizer;
  using reducer_type   = Reducer;
  using feedback_type  = Feedback;
  using dither_type    = typename Quantizer::dither;
  using payload_op     = typename Reducer::op;
  using lanes          = packed_codes<Reducer::lane_bits>;

  static constexpr bool casts          = false;
  static constexpr int chunk_size      = Chunker::chunk_size;
  static constexpr bool rotates_chunks = Rotator::rotation_size > 1;
  static constexpr bool rotates_all    = Rotator::rotation_size == 0;
  static constexpr bool tracks         = Range::headroom_type::tracked;
  static constexpr bool saturates      = Reducer::saturating;
  static constexpr bool feeds_back     = Feedback::enabled;
  static constexpr bool per_tensor     = Range::measurement == statistic::tensor_square_norm;

  //! The wire word of codes that are all zero: what a chunk without a step sends.
  static constexpr std::uint32_t zero_word =
    Reducer::biased ? lanes::ones * static_cast<std::uint32_t>(Quantizer::max_level) : 0;

  static_assert(!rotates_chunks || Rotator::rotation_size == chunk_size,
                "tersum: partial_hadamard<N> rotates whole chunks: make N equal to the chunk size");
  static_assert(Quantizer::bits <= Reducer::lane_bits,
                "tersum: the reducer's lanes are narrower than the quantizer's codes");
  static_assert(
    !tracks || (saturates && Reducer::lane_bits <= 8),
    "tersum: tracked_correlation is for saturating lanes of up to 8 bits; exact sums need only literal");
  static_assert(
    !rotates_all || !feeds_back,
    "tersum: full_hadamard is for comparison and has no feedback: use partial_hadamard");

  [[no_unique_address]] Chunker chunker{};
  [[no_unique_address]] Rotator rotator{};
  [[no_unique_address]] Range range{};
  [[no_unique_address]] Quantizer quantizer{};
  [[no_unique_address]] Reducer reducer{};
  [[no_unique_address]] Feedback feedback{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<codec> plan(layout const& gradient, world const& ranks) const
  {
    return tersum::plan<codec>{*this, gradient, ranks};
  }
};

//! @brief A codec that only converts: its one round is a native sum of `T`. The baseline, and what users have today.
template <gradient_element T>
struct cast_codec {
  using quantizer_type = cast<T>;
  using payload_op     = native_sum<T>;
  using feedback_type  = no_feedback;

  static constexpr bool casts       = true;
  static constexpr bool rotates_all = false;
  static constexpr bool tracks      = false;
  static constexpr bool feeds_back  = false;
  static constexpr int chunk_size =
    1024;  //!< How tensors are divided for kernels; not a property of the wire.

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<cast_codec> plan(layout const& gradient,
                                                        world const& ranks) const
  {
    return tersum::plan<cast_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

#include <tersum/plan.hpp>
