// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange will need, as pure arithmetic: rounds, bytes of wire, workspace and state.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/description.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief One codec applied to one gradient by one world. All ranks make the same plan, apart from `world::rank`.
//!
//! Made by `codec.plan(layout, world)`. All sizes are exact; what a codec does not have is 0. The codec's `counts_type`
//! adds to these members, for all codecs:
//!
//! - `agreed_scalars()` and `agreed_bytes()`: norms or magnitudes that the ranks agree on before they encode; of paired
//!   low-rank factors P.
//! - `payload_bytes()`: the codes, or the converted values, that one rank gives to the collective.
//! - `all_bypass()`: whether the bucket travels as floats: because the layout exempts all tensors; because a budget pays for no
//!   chunk, so that `travels()` is false (where `layout::bypass_unpaid` forbids that the mean is zeros); because `wire_bytes()`
//!   would be more. That is what one rank gives to the collectives, the same on all; of gathers it receives n - 1 times as much.
//!   Factors are more only if `low_rank::least_saving` is 0, which asks for that, as lanes of 32 bits do.
//! - `for_each_record(visit)` calls visit(tensor_record const&) for the records of the layout's tensors in order, as
//!   `initialize` writes them. Empty tensors have none.
//!
//! @par Example
//! @snippet examples/transports/mpi_all_reduce.cpp plan
template <class Codec>
class plan : public Codec::counts_type {
  using counts = typename Codec::counts_type;

 public:
  using codec_type = Codec;

  //! @param more  What the codec's own plan() takes besides, such as the boundaries of shards.
  template <class... More>
  constexpr plan(Codec const& codec,
                 layout const& gradient,
                 world const& ranks,
                 More const&... more)
    : counts(codec, gradient, detail::with_only_rank(ranks), more...)
  {
    bool const unpaid = !this->travels() && gradient.bypass_unpaid;
    // Lanes of 32 bits are for hops that look up.
    constexpr bool asked = counts::may_grow || requires { requires Codec::lanes::bits == 32; };
    bool const grows     = wire_bytes() > 4 * this->coordinates() && !asked;
    if (this->compressed_ > 0 && (unpaid || grows)) {
      this->layout_.bypass_below  = ~std::uint64_t{0};
      static_cast<counts&>(*this) = counts(codec, this->layout_, this->world_, more...);
    }
    checked_ = counts::check();
    detail::exchange_args<Codec, float> args{};
    this->take_state(state_, args);
    this->take_workspace(workspace_, args);
    if (checked_.ok()) { fingerprint_ = describe_state().hash(); }
  }

  //! Whether this exchange can be made. All calls that take the plan ask first, and return this error.
  [[nodiscard]] constexpr status check() const noexcept { return checked_; }

  //! @brief What `state_header::layout` holds: `state_version` in its lowest byte, and above it a hash of the codec's `describe()`,
  //! of sections, tensors, weights, chunks and boundaries and, where a section is of this rank's part, of rank and world. So a
  //! state is accepted by the codec that made it, and by no other.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept
  {
    return fingerprint_ / 256 * 256 + state_version;
  }

  //! @name Rounds
  //! What one rank gives to the caller's collective.
  //! @{

  //! Bytes of the coordinates that bypass, as float32.
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept
  {
    return this->bypassed() * sizeof(float);
  }
  //! Bytes of all rounds.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept
  {
    return this->agreed_bytes() + counted_payload_bytes() + bypass_bytes();
  }
  //! What counts of the payload: all of it or, of two shots, the mean of both ways, as a ring all-reduce with their traffic has.
  [[nodiscard]] constexpr std::uint64_t counted_payload_bytes() const noexcept
  {
    if constexpr (requires { this->mean_bytes(); }) {
      return (this->payload_bytes() + this->mean_bytes()) / 2;
    }
    return this->payload_bytes();
  }
  //! Bits of all rounds per coordinate of the gradient: 8 wire_bytes() / coordinates().
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    if (this->coordinates() == 0) { return 0; }
    return 8.0 * static_cast<double>(wire_bytes()) / static_cast<double>(this->coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory that hold the rounds. Nothing in it needs to survive an exchange.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return workspace_.bytes();
  }
  //! Bytes that must live from step to step; `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept { return state_.bytes(); }
  //! The arrays of the workspace and of the state, in the order of memory, by name.
  [[nodiscard]] constexpr detail::section_list const& workspace_sections() const noexcept
  {
    return workspace_;
  }
  [[nodiscard]] constexpr detail::section_list const& state_sections() const noexcept
  {
    return state_;
  }
  //! Where the array of this name begins in the workspace or in the state; 0 if there is none.
  [[nodiscard]] constexpr std::size_t offset(detail::section name) const noexcept
  {
    std::size_t const at = workspace_.offset(name);
    return at > 0 ? at : state_.offset(name);
  }
  //! @}

 private:
  static constexpr bool owners = scattering<Codec> && !selects<Codec>;
  static_assert(
    detail::suits_feedback<false, owners, publishing<Codec>, typename Codec::feedback_type>()
      .empty());

  constexpr description describe_state() const noexcept
  {
    description all{"state", this->codec(), this->coordinates(), this->chunks(), state_sections()};
    this->for_each_record([&](tensor_record const& t) {
      all = {"record", all, t.offset, t.size, t.chunks, t.weight};
    });
    this->for_each_matrix([&](auto const& m) { all = {"matrix", all, m.rows, m.columns, m.rank}; });
    this->for_each_boundary([&](std::uint64_t begin) { all = {"boundary", all, begin}; });
    return all;
  }

  status checked_{};
  std::uint64_t fingerprint_ = 0;
  detail::section_list state_, workspace_;
};

}  // namespace tersum::inline v0
