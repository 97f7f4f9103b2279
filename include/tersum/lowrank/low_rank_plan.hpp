// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange of low-rank factors will need: the same members as every plan.

#pragma once

#include <tersum/cast_codec.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief One low-rank codec applied to one bucket by one world.
//!
//! `chunks()` counts the matrices that travel as factors. Sizes are exact.
template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback>
class plan<low_rank_codec<LowRank, Wire, Schedule, Feedback>> {
 public:
  using codec_type = low_rank_codec<LowRank, Wire, Schedule, Feedback>;

  static constexpr std::size_t alignment = 16;  //!< Of workspace and state, bytes.
  static constexpr bool paired           = Schedule == low_rank_schedule::paired;
  static constexpr bool converts =
    !std::is_same_v<Wire, float>;  //!< Factors on the wire are copies.

  constexpr plan(codec_type const& codec, layout const& gradient, world const& ranks);

  [[nodiscard]] constexpr codec_type const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept;

  //! @name Counts
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return tensors_; }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return matrices_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept { return compressed_; }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }

  //! Blocks of 64 that a turn's product is divided in, and blocks of 64 rows of all matrices.
  [[nodiscard]] constexpr std::uint64_t blocks(int turn) const noexcept { return blocks_[turn]; }
  [[nodiscard]] constexpr std::uint64_t row_blocks() const noexcept { return row_blocks_; }
  //! @}

  //! @name Rounds
  //! Elements and bytes that one rank gives to the all-reduce in each round.
  //! @{

  //! Elements of the factors of a turn; the shorter of two alternating turns is padded with zeros.
  [[nodiscard]] constexpr std::uint64_t factor_elements(int turn) const noexcept
  {
    return paired ? elements_[turn] : detail::maximum(elements_[0], elements_[1]);
  }
  //! P of a paired exchange.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return paired ? factor_elements(0) : 0;
  }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return agreed_scalars() * sizeof(Wire);
  }
  //! Q of a paired exchange, or the one factor of an alternating one.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return factor_elements(1) * sizeof(Wire);
  }
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept
  {
    return bypassed_ * sizeof(float);
  }

  //! All rounds together.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept
  {
    return agreed_bytes() + payload_bytes() + bypass_bytes();
  }
  //! Factors have no budget.
  [[nodiscard]] constexpr bool travels() const noexcept { return true; }

  //! Input of the all-reduce in bits, all rounds, per coordinate of the gradient.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    return detail::bits_over(wire_bytes(), coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory: the rounds, 4 bytes per matrix, and where the wire is not float32 the factors in float32.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return bypass_offset() + bypass_bytes();
  }

  //! Bytes that live from step to step: records, warm start, residual. `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return residual_offset() + (Feedback::enabled ? coordinates() * sizeof(float) : 0);
  }

  //! @brief What `state_header::layout` holds: a hash of tensors, matrices and their ranks, of the
  //! schedule, and of whether there is feedback.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept { return fingerprint_; }
  //! @}

  //! @name Offsets
  //! Where things lie in workspace and state, in bytes.
  //! @{
  [[nodiscard]] constexpr std::size_t agreed_offset() const noexcept
  {
    return padded(matrices_ * sizeof(std::uint32_t));  // the flags of the matrices come first
  }
  [[nodiscard]] constexpr std::size_t payload_offset() const noexcept
  {
    return agreed_offset() + padded(agreed_bytes());
  }
  //! Float32 factors: of a paired exchange P and Q; else what the turn starts from and what it sends.
  [[nodiscard]] constexpr std::size_t factor_offset(int turn) const noexcept
  {
    std::size_t const first = payload_offset() + padded(payload_bytes());
    if (turn == 0) { return paired && !converts ? agreed_offset() : first; }
    if (!converts) { return payload_offset(); }
    return first + padded(factor_elements(0) * sizeof(float));
  }
  [[nodiscard]] constexpr std::size_t bypass_offset() const noexcept
  {
    std::size_t end = payload_offset() + padded(payload_bytes());
    if (converts || !paired) { end += padded(factor_elements(0) * sizeof(float)); }
    if (converts) { end += padded(factor_elements(1) * sizeof(float)); }
    return end;
  }

  [[nodiscard]] constexpr std::size_t records_offset() const noexcept
  {
    return sizeof(state_header);
  }
  [[nodiscard]] constexpr std::size_t table_offset() const noexcept
  {
    return records_offset() + tensors_ * sizeof(tensor_record);
  }
  [[nodiscard]] constexpr std::size_t warm_offset() const noexcept
  {
    return table_offset() + matrices_ * sizeof(matrix_record);
  }
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept
  {
    return warm_offset() + padded(factor_elements(1) * sizeof(float));
  }
  //! @}

  //! @brief The records of the layout's tensors in order, as `initialize` writes them. Empty tensors have none.
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const;

  //! @brief The records of the matrices that travel as factors.
  template <class Visitor>
  constexpr void for_each_matrix(Visitor visit) const;

 private:
  [[nodiscard]] static constexpr std::uint64_t blocks_of(std::uint64_t length) noexcept
  {
    return (length + codec_type::chunk_size - 1) / codec_type::chunk_size;
  }
  [[nodiscard]] static constexpr std::size_t padded(std::size_t bytes) noexcept
  {
    return detail::round_up(bytes, alignment);
  }

  // Visits each tensor that is not empty with its rank, 0 if it bypasses.
  template <class Visitor>
  constexpr void for_each_tensor(Visitor visit) const;

  codec_type codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_     = 0;
  std::uint64_t matrices_    = 0;
  std::uint64_t compressed_  = 0;
  std::uint64_t bypassed_    = 0;
  std::uint64_t elements_[2] = {};
  std::uint64_t blocks_[2]   = {};
  std::uint64_t row_blocks_  = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace tersum::inline v0

#include <tersum/lowrank/detail/low_rank_plan.ipp>
