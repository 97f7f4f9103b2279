// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange of low-rank factors will need: the same members as every plan.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief One matrix as kernels see it; part of the state. P is turn 0 and Q turn 1 of a paired exchange; alternating
//! exchanges are turns themselves, and a matrix with `swapped` sends Q in the even ones.
struct matrix_record {
  std::uint64_t offset;   //!< First coordinate in the gradient.
  std::uint64_t rows;     //!< Length of a column of P.
  std::uint64_t columns;  //!< Length of a column of Q.
  std::uint64_t
    slot[2];  //!< First element of its factor in even and in odd turns, on the wire and in memory.
  std::uint64_t first_block
    [2];  //!< Blocks of 64 elements of the columns of the factors before, in even and odd turns.
  std::uint64_t first_rows;  //!< Blocks of 64 rows of the matrices before.
  std::uint32_t rank;        //!< Columns of P and of Q.
  std::uint32_t swapped;
  std::uint64_t turns;  //!< Exchanges that went into the warm start.

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool sends_rows(int turn) const noexcept
  {
    return (turn == 0) != (swapped != 0);
  }
  //! Elements of one column of the factor that a turn sends.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t length(int turn) const noexcept
  {
    return sends_rows(turn) ? rows : columns;
  }
};
static_assert(sizeof(matrix_record) == 80);

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

  constexpr plan(codec_type const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), layout_(gradient), world_(ranks)
  {
    for_each_matrix([this](matrix_record const& m) {
      for (int turn = 0; turn < 2; ++turn) {
        elements_[turn] = m.slot[turn] + m.rank * m.length(turn);
        blocks_[turn]   = m.first_block[turn] + blocks_of(m.length(turn));
      }
      row_blocks_ = m.first_rows + blocks_of(m.rows);
      ++matrices_;
      compressed_ += m.rows * m.columns;
    });
    for_each_record([this](tensor_record const& record) {
      ++tensors_;
      bypassed_ += record.chunks == 0 ? record.size : 0;
    });
  }

  [[nodiscard]] constexpr codec_type const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept
  {
    // A codec that only converts has the same limits on world and layout.
    if (status const s = cast_codec<float>{}.plan(layout_, world_).check(); !s.ok()) { return s; }
    if (matrices_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return {error_code::invalid_argument, "layout.tensors has more than 2^31 matrices"};
    }
    return {};
  }

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

  //! Input of the all-reduce in bits, all rounds, per coordinate of the gradient.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    return coordinates() == 0
             ? 0.0
             : 8.0 * static_cast<double>(wire_bytes()) / static_cast<double>(coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory: the rounds, 4 bytes a matrix, and where the wire is not float32 the factors in float32.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return bypass_offset() + bypass_bytes();
  }

  //! Bytes that live from step to step: records, warm start, residual. `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return residual_offset() + (Feedback::enabled ? coordinates() * sizeof(float) : 0);
  }
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
  constexpr void for_each_record(Visitor visit) const
  {
    std::uint64_t matrix = 0;
    std::uint64_t bypass = 0;
    for_each_tensor([&](tensor const& t, std::uint64_t rank) {
      tensor_record record{};
      record.offset      = t.offset;
      record.size        = t.size();
      record.first_chunk = matrix;
      record.chunks      = rank == 0 ? 0 : 1;
      record.bypass      = bypass;
      record.ratio       = static_cast<float>(world_.size);
      visit(record);
      matrix += record.chunks;
      bypass += rank == 0 ? t.size() : 0;
    });
  }

  //! @brief The records of the matrices that travel as factors.
  template <class Visitor>
  constexpr void for_each_matrix(Visitor visit) const
  {
    matrix_record m{};
    for_each_tensor([&](tensor const& t, std::uint64_t rank) {
      if (rank == 0) { return; }
      m.offset  = t.offset;
      m.rows    = t.rows;
      m.columns = t.columns;
      m.rank    = static_cast<std::uint32_t>(rank);
      // The longer factor goes into the turn that is shorter so far.
      bool const rows_first = paired || (m.rows > m.columns) == (m.slot[0] <= m.slot[1]);
      m.swapped             = rows_first ? 0 : 1;
      visit(static_cast<matrix_record const&>(m));
      for (int turn = 0; turn < 2; ++turn) {
        m.slot[turn] += rank * m.length(turn);
        m.first_block[turn] += blocks_of(m.length(turn));
      }
      m.first_rows += blocks_of(m.rows);
    });
  }

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
  constexpr void for_each_tensor(Visitor visit) const
  {
    if (layout_.tensors.empty() && layout_.coordinates > 0) {
      visit(tensor{.rows = layout_.coordinates}, std::uint64_t{0});
    }
    for (tensor const& t : layout_.tensors) {
      if (t.size() == 0) { continue; }
      visit(t, layout_.bypasses(t) ? std::uint64_t{0} : codec_.low_rank.rank_of(t));
    }
  }

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
};

}  // namespace tersum::inline v0
