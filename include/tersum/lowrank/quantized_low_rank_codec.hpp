// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Low-rank factors that travel by another codec: PowerSGD with quantized P and Q.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>

#include <type_traits>

namespace tersum::inline v0 {

//! @brief A `low_rank_codec` whose factors are exchanged by a codec of their own: to that one, all P of the bucket are
//! one gradient, and all Q another.
//!
//! Each round of factors becomes the rounds of `inner`. The mean that `inner` decodes, equal on all ranks, takes the
//! place of the sum. Feedback is measured against what the ranks rebuild, so it also takes up what was lost of P and of
//! Q.
//!
//! `all_reduce_mean` and `loopback_all_reduce_mean` exchange it in one call. To exchange it in parts, call those of
//! `plan::factors()` on `plan::factors_state` and `plan::factors_workspace`; instead of reducing their agreed and
//! payload wires, exchange the wires' elements as the gradients of `plan::inner(0)` and `plan::inner(1)`.
//!
//! A value that is not finite makes NaN of the matrices that have factors in its chunk of the inner codec.
//!
//! @tparam Factors  `low_rank_codec` with float on the wire.
//! @tparam Inner    Any codec without feedback that takes a vector: rotated saturating codes, two-shot codes, casts.
template <class Factors, class Inner>
struct quantized_low_rank_codec {
  using factors_type  = Factors;
  using inner_type    = Inner;
  using feedback_type = typename Factors::feedback_type;

  static constexpr bool nests      = true;
  static constexpr bool agrees     = Factors::agrees;  //!< P and Q travel, not one of them.
  static constexpr bool feeds_back = Factors::feeds_back;

  static_assert(is_low_rank<Factors>,
                "tersum: the first argument of quantized_low_rank_codec is a low_rank_codec");
  static_assert(std::is_same_v<typename Factors::wire_element, float>,
                "tersum: factors that are quantized have to be float: low_rank_codec<..., float>");
  static_assert(!is_low_rank<Inner> && !nesting<Inner> && !Inner::feeds_back,
                "tersum: factors change their basis from step to step: give feedback to the "
                "low_rank_codec, not to the codec of the factors");

  Factors factors{};
  Inner inner{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<quantized_low_rank_codec> plan(layout const& gradient,
                                                                      world const& ranks) const
  {
    return tersum::plan<quantized_low_rank_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

#include <tersum/lowrank/quantized_low_rank_plan.hpp>
