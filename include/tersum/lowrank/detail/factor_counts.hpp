// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of low-rank factors counts: matrices, elements of their factors, and the memory of both.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/detail/factor_args.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief One low-rank codec applied to one bucket: `chunks()` counts the matrices that travel as factors.
template <class Codec>
class factor_counts : public plan_counts<Codec> {
  using wire = typename Codec::wire_element;

 public:
  using parts_type               = factor_args<wire>;
  using entry_type               = matrix_record;
  static constexpr bool paired   = agrees<Codec>;
  static constexpr bool may_grow = true;  // if least_saving is 0

  constexpr factor_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks)
  {
    for_each_tensor([this](tensor const& t, std::uint64_t rank) {
      this->compressed_ += rank == 0 ? 0 : t.size();
    });
    for_each_matrix([this](matrix_record const& m) {
      for (int turn = 0; turn < 2; ++turn) {
        elements_[turn] = m.slot[turn] + m.rank * m.length(turn);
        blocks_[turn]   = m.first_block[turn] + m.blocks(turn);
        products_[turn] = m.first_product[turn] + products_of(m, turn);
        if (m.is_divided(turn)) {
          partials_[turn] =
            m.first_partial[turn] + m.slices(turn).count() * m.rank * m.length(turn);
        }
      }
      row_blocks_ = m.first_rows + (m.rows + 63) / 64;
      ++this->chunks_;
    });
    for_each_record([this](tensor_record const& record) {
      ++this->tensors_;
      this->bypassed_ += record.chunks == 0 ? record.size : 0;
    });
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    // A codec that only converts has the same limits on world and layout.
    if (status const s = floats_in_wire{}.plan(this->layout_, this->world_).check(); !s.ok()) {
      return s;
    }
    if (this->layout_.tensors.empty() && this->coordinates() > 0) {
      return {
        error_code::invalid_argument,
        "layout.tensors is empty, so that there is no matrix to compress: low-rank codecs need the tensors "
        "of the gradient"};
    }
    if (this->layout_.whole != 0) {
      return {
        error_code::unsupported,
        "layout is a part of a bucket, which may cut matrices: low-rank codecs take whole ones"};
    }
    if (this->chunks_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return {error_code::invalid_argument, "layout.tensors has more than 2^31 matrices"};
    }
    return {};
  }

  //! Blocks of 64 that a turn's product is divided in, and blocks of 64 rows of all matrices.
  [[nodiscard]] constexpr std::uint64_t blocks(int turn) const noexcept { return blocks_[turn]; }
  [[nodiscard]] constexpr std::uint64_t row_blocks() const noexcept { return row_blocks_; }

  //! Thread blocks that make the product of a turn: those of 64, once for each slice where matrices are divided.
  [[nodiscard]] constexpr std::uint64_t product_blocks(int turn) const noexcept
  {
    return products_[turn];
  }
  //! Sums of slices of a turn that lie in the workspace until they are added: none if no matrix is divided.
  [[nodiscard]] constexpr std::uint64_t partial_sums(int turn) const noexcept
  {
    return partials_[turn];
  }

  //! Elements of the factors of a turn; the shorter of two alternating turns is padded with zeros.
  [[nodiscard]] constexpr std::uint64_t factor_elements(int turn) const noexcept
  {
    return paired ? elements_[turn] : maximum(elements_[0], elements_[1]);
  }
  //! P of a paired exchange.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return paired ? factor_elements(0) : 0;
  }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return agreed_scalars() * sizeof(wire);
  }
  //! Q of a paired exchange, or the one factor of an alternating one.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return factor_elements(1) * sizeof(wire);
  }

  //! What kernels are given besides memory.
  template <class Args>
  constexpr void fill(Args& args) const noexcept
  {
    plan_counts<Codec>::fill(args);
    args.parts.elements = factor_elements(1);
    for (int turn = 0; turn < 2; ++turn) {
      args.parts.blocks[turn]   = blocks(turn);
      args.parts.products[turn] = product_blocks(turn);
    }
    args.parts.row_blocks = row_blocks();
    args.parts.largest    = feeds_back<Codec> ? largest_summand<wire>(this->world_.size)
                                              : std::numeric_limits<float>::infinity();
  }
  //! @brief Factors in float32 lie on the wire, unless the wire has another element or has only one of them.
  constexpr void take_workspace(section_list& work, auto& args) const noexcept
  {
    auto& parts    = args.parts;
    parts.poisoned = work.take<std::uint32_t>("poisoned", this->chunks());
    wire* agreed   = work.take<wire>("agreed", agreed_scalars());
    parts.wire[1]  = work.take<wire>("payload", factor_elements(1));
    parts.wire[0]  = paired ? agreed : parts.wire[1];
    if constexpr (std::is_same_v<wire, float>) {
      if (paired) { work.share("agreed", "even_factor"); }
      parts.factor[0] = paired ? agreed : work.take<float>("even_factor", factor_elements(0));
      work.share("payload", "odd_factor");
      parts.factor[1] = parts.wire[1];
    } else {
      parts.factor[0] = work.take<float>("even_factor", factor_elements(0));
      parts.factor[1] = work.take<float>("odd_factor", factor_elements(1));
    }
    parts.partials = work.take<float>("slice_sums", maximum(partials_[0], partials_[1]));
    args.bypass    = work.take<float>("bypass", this->bypassed());
  }
  constexpr void take_state(section_list& state, auto& args) const noexcept
  {
    args.header  = state.take<state_header>("header", 1);
    args.records = state.take<tensor_record>("records", this->tensors());
    args.table   = state.take<matrix_record>("table", this->chunks());
    args.bypassed.take_gain(state, this->bypassed());
    args.metric     = decltype(args.metric)::of(state, this->coordinates());
    args.parts.warm = state.keep<float>("warm", factor_elements(1));
    args.residual = take_residual<Codec>(state, "residual", feeds_back<Codec>, this->coordinates());
  }

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
      record.ratio       = static_cast<float>(this->world_.size);
      visit(record);
      matrix += record.chunks;
      bypass += rank == 0 ? t.size() : 0;
    });
  }

  //! @brief Calls visit(matrix_record const&) for the matrices that travel as factors.
  template <class Visitor>
  constexpr void for_each_matrix(Visitor visit) const
  {
    matrix_record m{};
    slice_placement sums[2] = {{this->compressed_}, {this->compressed_}};
    for_each_tensor([&](tensor const& t, std::uint64_t rank) {
      if (rank == 0) { return; }
      m.offset  = t.offset;
      m.rows    = t.rows;
      m.columns = t.columns;
      m.rank    = static_cast<std::uint32_t>(rank);
      // The longer factor goes into the turn that is shorter so far.
      bool const rows_first = paired || (m.rows > m.columns) == (m.slot[0] <= m.slot[1]);
      m.swapped             = rows_first ? 0 : 1;
      for (int turn = 0; turn < 2; ++turn) {
        auto const slices     = product_slices::of(m.length(turn), m.length(1 - turn));
        m.slice_log[turn]     = static_cast<std::uint32_t>(slices.log);
        m.first_partial[turn] = sums[turn].place(slices, m.length(turn), rank);
      }
      visit(static_cast<matrix_record const&>(m));
      for (int turn = 0; turn < 2; ++turn) {
        m.slot[turn] += rank * m.length(turn);
        m.first_block[turn] += m.blocks(turn);
        m.first_product[turn] += products_of(m, turn);
      }
      m.first_rows += (m.rows + 63) / 64;
    });
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t products_of(matrix_record const& m,
                                                           int turn) noexcept
  {
    return m.blocks(turn) * (m.is_divided(turn) ? m.slices(turn).count() : 1);
  }

  // Visits each tensor that is not empty with its rank, 0 if it bypasses.
  template <class Visitor>
  constexpr void for_each_tensor(Visitor visit) const
  {
    if (this->layout_.tensors.empty() && this->layout_.coordinates > 0) {
      visit(tensor{.rows = this->layout_.coordinates}, std::uint64_t{0});
    }
    for (tensor const& t : this->layout_.tensors) {
      if (t.size() == 0) { continue; }
      visit(t, this->layout_.bypasses(t) ? std::uint64_t{0} : this->codec_.low_rank.rank_of(t));
    }
  }

  std::uint64_t elements_[2] = {};
  std::uint64_t blocks_[2]   = {};
  std::uint64_t products_[2] = {};
  std::uint64_t partials_[2] = {};
  std::uint64_t row_blocks_  = 0;
};

}  // namespace tersum::inline v0::detail
