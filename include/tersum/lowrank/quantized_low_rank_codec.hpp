// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Low-rank factors that travel by another codec: PowerSGD with quantized P and Q.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! @brief A plan of factors, and a plan for each of them: what the factors have in memory, and then what their codec has.
//! The state of the factors comes first, so that its header is that of the exchange.
template <class Codec>
class nested_counts : public plan_counts<Codec> {
  using factors_type = typename Codec::factors_type;
  using inner_type   = typename Codec::inner_type;

 public:
  constexpr nested_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks),
      factors_(averaged(codec.factors).plan(gradient, ranks)),
      inner_{codec.inner.plan(layout{factors_.agreed_scalars()}, ranks),
             codec.inner.plan(layout{factors_.factor_elements(1)}, ranks)}
  {
    this->tensors_     = factors_.tensors();
    this->chunks_      = factors_.chunks();
    this->compressed_  = factors_.compressed();
    this->bypassed_    = factors_.bypassed();
    this->fingerprint_ = factors_.state_fingerprint();
    if constexpr (keeps_sent<inner_type>) {
      if (inner_[1].all_bypass()) { return; }  // nothing is lost on the way, and nothing is kept
      auto sending    = averaged(codec.factors);
      sending.sent_at = workspace_sections().offset(section::inner) + inner_[1].sent_offset();
      factors_        = sending.plan(gradient, ranks);
    }
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = factors_.check(); !s.ok()) { return s; }
    if (status const s = inner_[0].check(); !s.ok()) { return s; }
    return inner_[1].check();
  }

  //! Matrices to factors and back; it takes factors as means.
  [[nodiscard]] constexpr plan<factors_type> const& factors() const noexcept { return factors_; }
  //! How a round of factors travels: 0 is P, 1 is Q or the one factor of an alternating exchange.
  [[nodiscard]] constexpr plan<inner_type> const& inner(int turn) const noexcept
  {
    return inner_[turn];
  }

  //! Elements of P; none when alternating.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return factors_.agreed_scalars();
  }
  //! Bytes of all rounds that P takes; none when alternating.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return agrees<Codec> ? inner_[0].wire_bytes() : 0;
  }
  //! Bytes of all rounds that Q takes.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return inner_[1].wire_bytes();
  }
  //! Whether the inner codec's budget, if it has one, pays for all factors.
  [[nodiscard]] constexpr bool travels() const noexcept
  {
    return inner_[1].travels() && (!agrees<Codec> || inner_[0].travels());
  }
  //! Whether its budget pays for no part of a factor, so that this factor travels as floats.
  [[nodiscard]] constexpr bool all_bypass() const noexcept
  {
    return inner_[1].all_bypass() || inner_[0].all_bypass();
  }

  //! Both factors use the same memory, one after the other.
  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const bytes = maximum(inner_[0].workspace_bytes(), inner_[1].workspace_bytes());
    return factors_.workspace_sections().then(holds<std::byte>(section::inner, bytes, 16));
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    return factors_.state_sections().then(
      holds<std::byte>(section::even_inner, inner_[0].state_bytes(), 16),
      holds<std::byte>(section::odd_inner, inner_[1].state_bytes(), 16));
  }
  [[nodiscard]] constexpr std::size_t inner_state_offset(int turn) const noexcept
  {
    return state_sections().offset(turn == 0 ? section::even_inner : section::odd_inner);
  }

  //! @name Memory of the parts
  //! @{
  [[nodiscard]] constexpr std::span<std::byte> factors_state(
    std::span<std::byte> state) const noexcept
  {
    return state.first(factors_.state_bytes());
  }
  [[nodiscard]] constexpr std::span<std::byte> factors_workspace(
    std::span<std::byte> workspace) const noexcept
  {
    return workspace.first(factors_.workspace_bytes());
  }
  [[nodiscard]] constexpr std::span<std::byte> inner_state(std::span<std::byte> state,
                                                           int turn) const noexcept
  {
    return state.subspan(inner_state_offset(turn), inner(turn).state_bytes());
  }
  [[nodiscard]] constexpr std::span<std::byte> inner_workspace(std::span<std::byte> workspace,
                                                               int turn) const noexcept
  {
    return workspace.subspan(workspace_sections().offset(section::inner),
                             inner(turn).workspace_bytes());
  }
  //! @}

 private:
  [[nodiscard]] static constexpr factors_type averaged(factors_type factors) noexcept
  {
    factors.averaged = true;
    return factors;
  }

  plan<factors_type> factors_;
  plan<inner_type> inner_[2];
};

}  // namespace detail

//! @brief A `low_rank_codec` whose factors are exchanged by a codec of their own: to that one, all P of the bucket are
//! one gradient, and all Q another.
//!
//! Each round of factors becomes the rounds of `inner`. The mean that `inner` decodes, equal on all ranks, takes the
//! place of the sum.
//!
//! An `Inner` with `sent_values` tells what the rank's own codes decode to. Feedback then subtracts that from the rank's own
//! gradient, so that what the ranks differ in is sent as well, and the residual of each drains. The owners of two shots take
//! what their second encoding loses from what they have sent. What saturates in a sum is lost, so the clip has to be wide.
//! Under an `Inner` without it, feedback subtracts the mean that the ranks rebuild: nothing is lost, but what the ranks differ
//! in stays, and keeps the steps of codes large.
//!
//! `all_reduce_mean` and `loopback_all_reduce_mean` exchange it in one call. To exchange it in parts, call those of
//! `plan::factors()` on `plan::factors_state` and `plan::factors_workspace`; instead of reducing their agreed and
//! payload wires, exchange the wires' elements as the gradients of `plan::inner(0)` and `plan::inner(1)`.
//!
//! A value that is not finite makes NaN of all matrices whose factors share a chunk of the inner codec with it.
//!
//! @tparam Factors  `low_rank_codec` with float on the wire.
//! @tparam Inner    Any codec that takes a vector: rotated saturating codes and two-shot codes with `sent_values`, or a
//!                  codec without feedback, such as a cast.
template <class Factors, class Inner>
struct quantized_low_rank_codec {
  using factors_type   = Factors;
  using inner_type     = Inner;
  using feedback_type  = typename Factors::feedback_type;
  using agreement_kind = typename Factors::agreement_kind;
  using payload_kind   = payload::exchanges;
  using counts_type    = detail::nested_counts<quantized_low_rank_codec>;

  static_assert(is_low_rank<Factors>,
                "tersum: the first argument of quantized_low_rank_codec is a low_rank_codec");
  static_assert(std::is_same_v<typename Factors::wire_element, float>,
                "tersum: factors that are quantized have to be float: low_rank_codec<..., float>");
  static_assert(!is_low_rank<Inner> && !nesting<Inner>,
                "tersum: the second argument of quantized_low_rank_codec is a codec of a vector");
  static_assert(!keeps_sent<Inner> || feeds_back<Factors>,
                "tersum: sent_values serves the feedback of the factors, and these have none");
  static_assert(!keeps_sent<Inner> ||
                  ((sends<Inner, payload::codes> || scattering<Inner>)&&!selects<Inner>),
                "tersum: sent_values is for codec and two_shot_codec, in chunks that all travel");
  static_assert(!feeds_back<Inner> || keeps_sent<Inner>,
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
