// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose payload is decoded, added and encoded again at every hop of the caller's all-reduce.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/concepts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/recoded_sum.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief Chunks are rotated and rounded to a codebook; the payload's reduction is `recoded_sum`.
//!
//! One round, an array of `coded_block`, which any all-reduce carries that takes a function object on elements of its
//! choice: MPI, Gloo, a ring of your own. There is nothing to agree on: every chunk has a scale of its own on every rank.
//! All ranks rotate a chunk by the same signs, so that hops add without rotating.
//!
//! Each hop loses the codebook's distortion of the partial sum's energy, so that the error grows with the ranks: n
//! independent gradients lose about (n + 3) / 2 - 1 / n encodings in a ring, and what they lose depends on the order of the
//! reduction. `two_shot_codec` loses two at the same traffic where the transport can move parts. This is for transports
//! whose all-reduce is all there is.
//!
//! Feedback keeps what a rank's own codes lost, not what hops lose.
//! @tparam Chunker    `fixed_chunks<C>`, C from 256.
//! @tparam Rotator    `partial_hadamard<C>`.
//! @tparam Quantizer  `lloyd_max<q>`.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
template <chunker Chunker, rotator Rotator, codebook Quantizer, feedback Feedback = no_feedback>
struct per_hop_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = Quantizer;
  using feedback_type  = Feedback;
  using dither_type    = no_dither;
  using payload_op     = recoded_sum<Quantizer, Chunker::chunk_size>;
  using norm_scalar    = bfloat16;
  using agreed_op      = norm_sum<norm_scalar>;

  static constexpr bool casts            = false;
  static constexpr bool recodes          = true;  //!< Hops decode, add and encode again.
  static constexpr bool selects          = false;
  static constexpr bool agrees           = false;
  static constexpr bool several_bits     = false;
  static constexpr bool rotates_chunks   = true;
  static constexpr bool rotates_all      = false;
  static constexpr bool tracks           = false;
  static constexpr bool saturates        = false;
  static constexpr bool feeds_back       = Feedback::enabled;
  static constexpr bool owner_feeds_back = false;  //!< Nobody owns a chunk.
  static constexpr int chunk_size        = Chunker::chunk_size;

  static_assert(!selecting_chunker<Chunker>, "tersum: per_hop_codec takes fixed_chunks");
  static_assert(chunk_size >= 256, "tersum: per_hop_codec needs chunks of at least 256");
  static_assert(
    Rotator::rotation_size == chunk_size,
    "tersum: per_hop_codec rotates whole chunks: use partial_hadamard of the chunk size");

  [[no_unique_address]] Chunker chunker{};
  [[no_unique_address]] Rotator rotator{};
  [[no_unique_address]] Quantizer quantizer{};
  [[no_unique_address]] Feedback feedback{};

  //! @brief How chunks are encoded: there is one width.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr per_hop_codec const& at_level() const noexcept
  {
    return *this;
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<per_hop_codec> plan(layout const& gradient,
                                                           world const& ranks) const
  {
    return tersum::plan<per_hop_codec>{*this, gradient, ranks};
  }
};

static_assert(reduce_op<recoded_sum<lloyd_max<4>, 1024>>, "tersum: must model tersum::reduce_op");

}  // namespace tersum::inline v0
