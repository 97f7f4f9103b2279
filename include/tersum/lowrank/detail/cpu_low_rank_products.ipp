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
    auto const element     = [&](std::uint64_t i) { return value(m.offset + i); };
    cpu_product<decltype(element)>{set_,
                                   element,
                                   m.rows,
                                   m.columns,
                                   static_cast<int>(m.rank),
                                   m.sends_rows(turn),
                                   (number - first(m)) * block}
      .run(from + m.slot[1 - turn], args_.wire[turn] + m.slot[turn]);
  });
}

#undef TERSUM_LOW_RANK_TEMPLATE
#undef TERSUM_LOW_RANK_STAGES

}  // namespace tersum::inline v0::detail
