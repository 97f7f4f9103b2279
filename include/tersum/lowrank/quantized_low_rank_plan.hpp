// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange of quantized low-rank factors will need: the same members as every plan.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/quantized_low_rank_codec.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

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
  //! What the header of the state holds as `layout`. The inner codec's states have headers of their own.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept
  {
    return factors_.state_fingerprint();
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
