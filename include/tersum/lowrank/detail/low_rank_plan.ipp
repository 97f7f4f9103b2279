// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of low_rank_plan.hpp: the records of a layout, and whether an exchange can be made.

#include <limits>

namespace tersum::inline v0 {

template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback>
constexpr plan<low_rank_codec<LowRank, Wire, Schedule, Feedback>>::plan(codec_type const& codec,
                                                                        layout const& gradient,
                                                                        world const& ranks)
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
    for (std::uint64_t const value : {m.rows, m.columns, std::uint64_t{m.rank}}) {
      fingerprint_ = detail::mix(fingerprint_, value);
    }
  });
  fingerprint_ = detail::mix(fingerprint_, paired ? 2 : 1);
  fingerprint_ = detail::mix(fingerprint_, Feedback::enabled ? 1 : 0);
  for_each_record([this](tensor_record const& record) {
    ++tensors_;
    bypassed_ += record.chunks == 0 ? record.size : 0;
    fingerprint_ = detail::add_record(fingerprint_, record);
  });
}

template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback>
constexpr status plan<low_rank_codec<LowRank, Wire, Schedule, Feedback>>::check() const noexcept
{
  // A codec that only converts has the same limits on world and layout.
  if (status const s = cast_codec<float>{}.plan(layout_, world_).check(); !s.ok()) { return s; }
  if (matrices_ > std::numeric_limits<std::uint32_t>::max() / 2) {
    return {error_code::invalid_argument, "layout.tensors has more than 2^31 matrices"};
  }
  return {};
}

template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback>
template <class Visitor>
constexpr void plan<low_rank_codec<LowRank, Wire, Schedule, Feedback>>::for_each_record(
  Visitor visit) const
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

template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback>
template <class Visitor>
constexpr void plan<low_rank_codec<LowRank, Wire, Schedule, Feedback>>::for_each_matrix(
  Visitor visit) const
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

template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback>
template <class Visitor>
constexpr void plan<low_rank_codec<LowRank, Wire, Schedule, Feedback>>::for_each_tensor(
  Visitor visit) const
{
  if (layout_.tensors.empty() && layout_.coordinates > 0) {
    visit(tensor{.rows = layout_.coordinates}, std::uint64_t{0});
  }
  for (tensor const& t : layout_.tensors) {
    if (t.size() == 0) { continue; }
    visit(t, layout_.bypasses(t) ? std::uint64_t{0} : codec_.low_rank.rank_of(t));
  }
}

}  // namespace tersum::inline v0
