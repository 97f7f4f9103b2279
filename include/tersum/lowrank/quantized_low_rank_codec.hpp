// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Low-rank factors that travel by another codec: PowerSGD with quantized P and Q.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief A `low_rank_codec` whose factors are exchanged by a codec of their own: to that one, all P of the bucket are
//! one gradient, and all Q another.
//!
//! Each round of factors becomes the rounds of `inner`. The mean that it decodes, equal on all ranks, takes the place
//! of the sum, so that feedback against what the ranks rebuild takes up what was lost of P and of Q too.
//!
//! `all_reduce_mean` and `loopback_all_reduce_mean` exchange it in one call. In parts it is the parts of
//! `plan::factors()` on `plan::factors_state` and `plan::factors_workspace`, and in the place of the reduction of
//! their agreed and payload wires those of `plan::inner(0)` and `plan::inner(1)`, with the wire's elements as the
//! gradient.
//!
//! A value that is not finite makes the matrices NaN that have factors in its chunk of the inner codec.
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

  [[no_unique_address]] Factors factors{};
  [[no_unique_address]] Inner inner{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<quantized_low_rank_codec> plan(layout const& gradient,
                                                                      world const& ranks) const
  {
    return tersum::plan<quantized_low_rank_codec>{*this, gradient, ranks};
  }
};

//! @brief One quantized low-rank codec applied to one bucket by one world: a plan of factors, and a plan for each of
//! them.
template <class Factors, class Inner>
class plan<quantized_low_rank_codec<Factors, Inner>> {
 public:
  using codec_type = quantized_low_rank_codec<Factors, Inner>;

  static constexpr std::size_t alignment = 16;  //!< Of workspace and state, bytes.

  constexpr plan(codec_type const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), factors_(averaged(codec.factors).plan(gradient, ranks)),
      first_(codec.inner.plan(layout{factors_.agreed_scalars()}, ranks)),
      second_(codec.inner.plan(layout{factors_.factor_elements(1)}, ranks))
  {
  }

  [[nodiscard]] constexpr codec_type const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return factors_.gradient(); }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return factors_.ranks(); }

  //! Matrices to factors and back; it takes factors as means.
  [[nodiscard]] constexpr plan<Factors> const& factors() const noexcept { return factors_; }

  //! How a round of factors travels: 0 is P, 1 is Q or the one factor of an alternating exchange.
  [[nodiscard]] constexpr plan<Inner> const& inner(int turn) const noexcept
  {
    return turn == 0 ? first_ : second_;
  }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = factors_.check(); !s.ok()) { return s; }
    if (status const s = first_.check(); !s.ok()) { return s; }
    return second_.check();
  }

  //! @name Counts
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept
  {
    return factors_.coordinates();
  }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return factors_.tensors(); }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return factors_.chunks(); }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept
  {
    return factors_.compressed();
  }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return factors_.bypassed(); }
  //! @}

  //! @name Rounds
  //! @{

  //! Elements of P; none when alternating.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return factors_.agreed_scalars();
  }
  //! Bytes of all rounds that P takes; none when alternating.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return Factors::agrees ? first_.wire_bytes() : 0;
  }
  //! Bytes of all rounds that Q takes.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return second_.wire_bytes();
  }
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept
  {
    return factors_.bypass_bytes();
  }
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept
  {
    return agreed_bytes() + payload_bytes() + bypass_bytes();
  }
  //! Whether the inner codec's budget, if it has one, pays for all factors.
  [[nodiscard]] constexpr bool travels() const noexcept
  {
    return second_.travels() && (!Factors::agrees || first_.travels());
  }

  //! Input of the all-reduce in bits, all rounds, per coordinate of the gradient.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    return detail::bits_over(wire_bytes(), coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! The state of the factors comes first, so that its header is that of the exchange.
  //! @{
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return inner_workspace_offset() +
           detail::maximum(first_.workspace_bytes(), second_.workspace_bytes());
  }
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return inner_state_offset(1) + second_.state_bytes();
  }
  [[nodiscard]] constexpr std::size_t inner_workspace_offset() const noexcept
  {
    return detail::round_up(factors_.workspace_bytes(), alignment);
  }
  [[nodiscard]] constexpr std::size_t inner_state_offset(int turn) const noexcept
  {
    std::size_t const first = detail::round_up(factors_.state_bytes(), alignment);
    return turn == 0 ? first : first + detail::round_up(first_.state_bytes(), alignment);
  }
  [[nodiscard]] constexpr std::size_t records_offset() const noexcept
  {
    return factors_.records_offset();
  }
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept
  {
    return factors_.residual_offset();
  }

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
  //! Both factors use the same memory, one after the other.
  [[nodiscard]] constexpr std::span<std::byte> inner_workspace(std::span<std::byte> workspace,
                                                               int turn) const noexcept
  {
    return workspace.subspan(inner_workspace_offset(), inner(turn).workspace_bytes());
  }
  //! @}

 private:
  [[nodiscard]] static constexpr Factors averaged(Factors factors) noexcept
  {
    factors.averaged = true;
    return factors;
  }

  codec_type codec_;
  plan<Factors> factors_;
  plan<Inner> first_, second_;
};

}  // namespace tersum::inline v0
