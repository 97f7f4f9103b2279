// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every rank sends its own largest coordinates: TopK, the baseline of chunked selection.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/stages.hpp>

namespace tersum::inline v0 {

template <class Codec>
class plan;

//! @brief The K coordinates of largest magnitude, K as large as `bits` pays for: bits = 48 K / d.
//!
//! Of equal magnitudes the lowest index comes first; a value that is not finite counts as infinite.
struct top_coordinates {
  static constexpr int chunk_size    = 1;
  static constexpr bool by_norm      = true;
  static constexpr int level_count   = 1;
  static constexpr bool several_bits = false;

  float bits = 2;  //!< Bits per coordinate that a rank sends: never exceeded.
};

static_assert(selecting_chunker<top_coordinates>, "tersum: must model tersum::selecting_chunker");

//! @brief TopK: its one round gathers the ranks' own indices (32 bits) and values (half), and every rank adds them up.
//!
//! For comparison, as in the literature. An all-reduce cannot carry it, and its traffic grows with the world. The
//! gradient is one vector: tensors do not bypass. Values that are not finite travel and are reported on every rank;
//! feedback does not keep them, but goes on for the other values. Source: Aji and Heafield (EMNLP'17); compared in Han
//! et al. (HotNets'24), tables 2 and 3.
//! @tparam Feedback  `no_feedback` or `error_feedback`.
template <feedback Feedback = no_feedback>
struct top_coordinates_codec {
  using chunker_type  = top_coordinates;
  using feedback_type = Feedback;
  using norm_scalar   = float;

  static constexpr bool casts        = true;
  static constexpr bool gathers      = true;  //!< Its round is an all-gather.
  static constexpr bool agrees       = false;
  static constexpr bool selects      = true;
  static constexpr bool several_bits = false;
  static constexpr bool rotates_all  = false;
  static constexpr bool tracks       = false;
  static constexpr bool feeds_back   = Feedback::enabled;
  static constexpr int chunk_size    = 1;

  //! The order of an exchange.
  using stages =
    stage_list<stage::open, stage::encode, round::gather_parts, stage::decode, stage::finish>;

  top_coordinates chunker{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<top_coordinates_codec> plan(layout const& gradient,
                                                                   world const& ranks) const
  {
    return tersum::plan<top_coordinates_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

#include <tersum/baseline/detail/top_coordinates_stages.hpp>
#include <tersum/baseline/top_coordinates_plan.hpp>
