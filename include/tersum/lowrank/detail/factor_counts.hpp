// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of low-rank factors counts: matrices, elements of their factors, and the memory of both.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/detail/factor_stages.hpp>
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
  using wire = typename Codec::quantizer_type::element;

 public:
  using parts_type               = factor_args<wire>;
  using entry_type               = matrix_record;
  static constexpr bool paired   = agrees<Codec>;
  static constexpr bool may_grow = true;  // if least_saving is 0

  constexpr factor_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks)
  {
    for_each_record([this](tensor_record const& record) {
      ++this->tensors_;
      this->chunks_ += record.chunks;
      (record.chunks == 0 ? this->bypassed_ : this->compressed_) += record.size;
    });
    end_ = for_each_matrix([](matrix_record const&) {});
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

  //! Where another matrix would begin. So its members count elements, blocks, and sums of slices of all that are there.
  [[nodiscard]] constexpr matrix_record const& factor_ends() const noexcept { return end_; }

  //! Elements of the factors of a turn; the shorter of two alternating turns is padded with zeros.
  [[nodiscard]] constexpr std::uint64_t factor_elements(int turn) const noexcept
  {
    return paired ? end_.slot[turn] : maximum(end_.slot[0], end_.slot[1]);
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
    args.parts.end      = end_;
    args.parts.largest  = feeds_back<Codec> ? largest_summand<wire>(this->world_.size)
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
    parts.partials =
      work.take<float>("slice_sums", maximum(end_.first_partial[0], end_.first_partial[1]));
    args.bypass = work.take<float>("bypass", this->bypassed());
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

  //! @brief Calls visit(matrix_record const&) for the matrices that travel as factors; returns where another one would begin.
  template <class Visitor>
  constexpr matrix_record for_each_matrix(Visitor visit) const
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
        m.first_product[turn] += m.blocks(turn) * (m.is_divided(turn) ? m.slices(turn).count() : 1);
      }
      m.first_rows += (m.rows + 63) / 64;
    });
    for (int turn = 0; turn < 2; ++turn) {
      m.first_partial[turn] = static_cast<std::uint32_t>(sums[turn].sums);
    }
    return m;
  }

 private:
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

  matrix_record end_{};
};

}  // namespace tersum::inline v0::detail
