// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The majority vote of signs: ranks count votes in the wire, and decode who has won.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/packed_codes.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/stages.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace stage {

//! Makes the votes of each lane as many as there are ranks, for the sign that has more of them.
struct take_majority : of_part<exchange_part::decode> {};

}  // namespace stage

//! @brief Lanes whose sums are votes: with `sign_quantizer` a coordinate becomes the step times the sign of the sum of the ranks'
//! signs, zero if as many are above as below zero. The transport adds 32-bit words.
//!
//! A vote takes a bit of a rank and its count log2(2 n + 1) bits, so lanes of 4 bits hold 7 ranks, of 8 bits 127. The mean is not
//! unbiased, and `error_feedback` would keep what a rank's own sign lost, not what the vote did: use it without feedback. Source:
//! Bernstein et al., signSGD: Compressed Optimisation for Non-Convex Problems (ICML'18), majority vote; there the optimizer chooses the
//! size of the step, here `mean_magnitude_range` does.
//! @tparam LaneBits  Lane width: 4, 8 or 16.
template <int LaneBits>
struct majority_lanes : guard_lanes<LaneBits> {
  using stages_before = stage_list<>;
  using stages_after  = stage_list<stage::take_majority>;  //!< The payload was reduced.
  constexpr description describe() const { return {"majority_lanes", LaneBits}; }

  //! @brief A word of sums as the outcome of its votes, which `decode` takes for such sums.
  //! @param word       Sums of codes of -1, 0 and 1, each plus the number of ranks.
  //! @param unanimous  The sum of equal codes of all ranks: their number times the quantizer's `max_level`.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t outcome(
    std::uint32_t word, std::uint32_t unanimous) noexcept
  {
    // Half of the values of a lane lie below its highest bit. Adding as much as there is from a number of votes to that bit tells of
    // all lanes at once whether they have so many; no lane carries, because it holds twice `unanimous`.
    using lanes                  = packed_codes<LaneBits>;
    constexpr std::uint32_t half = 1u << (LaneBits - 1);
    std::uint32_t const least    = (word + lanes::ones * (half - unanimous)) & lanes::signs;
    std::uint32_t const more     = (word + lanes::ones * (half - 1 - unanimous)) & lanes::signs;
    return ((least >> (LaneBits - 1)) + (more >> (LaneBits - 1))) * unanimous;
  }
};

static_assert(reducer<majority_lanes<4>>, "tersum: must model tersum::reducer");

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/majority_lanes.ipp>
