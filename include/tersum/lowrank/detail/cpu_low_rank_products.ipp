// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cpu_low_rank.hpp: products of gradients and factors.

namespace tersum::inline v0::detail {

//! The type whose members follow.
#define TERSUM_LOW_RANK_TEMPLATE                                                                   \
  template <class LowRank, class Wire, low_rank_schedule Schedule, class Feedback, class Element>
#define TERSUM_LOW_RANK_STAGES                                                                     \
  cpu_stages<low_rank_codec<LowRank, Wire, Schedule, Feedback>, Element>

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::multiply(int turn, float const* from) const
{
  parallel_for(threads_, args_.blocks[turn], [&](std::uint64_t number) {
    auto const first       = [turn](matrix_record const& m) { return m.first_block[turn]; };
    matrix_record const& m = matrix_of(number, first);
    multiply_columns(m, turn, (number - first(m)) * block, from);
  });
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::multiply_columns(matrix_record const& m,
                                              int turn,
                                              std::uint64_t begin,
                                              float const* from) const
{
  std::uint64_t const length = m.length(turn);
  std::uint64_t const other  = m.length(1 - turn);
  int const lanes            = static_cast<int>(std::min<std::uint64_t>(block, length - begin));
  int const rank             = static_cast<int>(m.rank);
  alignas(64) float tile[block * block];
  alignas(64) float sums[max_rank * block];
  std::fill_n(sums, rank * block, 0.0f);
  for (std::uint64_t at = 0; at < other; at += block) {
    int const terms = static_cast<int>(std::min<std::uint64_t>(block, other - at));
    load_tile(m, m.sends_rows(turn), begin, lanes, at, terms, tile);
    multiply_block(set_, from + m.slot[1 - turn] + at, other, 1, rank, terms, tile, sums);
  }
  for (std::uint32_t k = 0; k < m.rank; ++k) {
    Wire* const to = args_.wire[turn] + m.slot[turn] + k * length + begin;
    for (int i = 0; i < lanes; ++i) {
      float const sum = sums[k * block + static_cast<unsigned>(i)];
      to[i]           = from_float<Wire>(is_finite(sum) ? sum : bits_float(0x7f800000u));
    }
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::load_tile(matrix_record const& m,
                                       bool lanes_are_rows,
                                       std::uint64_t lane_begin,
                                       int lanes,
                                       std::uint64_t term_begin,
                                       int terms,
                                       float* tile) const
{
  if (lanes < block) { std::fill_n(tile, terms * block, 0.0f); }
  if (lanes_are_rows) {
    for (int lane = 0; lane < lanes; ++lane) {
      std::uint64_t const row = lane_begin + static_cast<unsigned>(lane);
      std::uint64_t const at  = m.offset + row * m.columns + term_begin;
      for (int t = 0; t < terms; ++t) {
        tile[t * block + lane] = value(at + static_cast<unsigned>(t));
      }
    }
  } else {
    for (int t = 0; t < terms; ++t) {
      std::uint64_t const row = term_begin + static_cast<unsigned>(t);
      std::uint64_t const at  = m.offset + row * m.columns + lane_begin;
      for (int lane = 0; lane < lanes; ++lane) {
        tile[t * block + lane] = value(at + static_cast<unsigned>(lane));
      }
    }
  }
}

#undef TERSUM_LOW_RANK_TEMPLATE
#undef TERSUM_LOW_RANK_STAGES

}  // namespace tersum::inline v0::detail
