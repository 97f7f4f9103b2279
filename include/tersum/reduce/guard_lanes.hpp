// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exact sums of packed lanes inside a native sum of 32-bit or 64-bit words.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/reduce/native.hpp>

namespace tersum::inline v0 {

//! @brief Codes are made non-negative and put into lanes with spare bits, so that no carry leaves a lane. The plain sum
//! of the words is then the sum of the lanes.
//!
//! It works with every transport that sums uint32 or uint64. A lane must hold 2 * max_level * ranks, which the plan
//! checks: codes of 4 bits in lanes of 8 bits serve 18 ranks, codes of 2 bits in lanes of 4 bits 7 ranks.
//! @tparam LaneBits  Lane width: 4, 8 or 16.
//! @tparam Word      Element that the transport sums: std::uint32_t or std::uint64_t.
template <int LaneBits, class Word = std::uint32_t>
struct guard_lanes {
  static_assert(LaneBits == 4 || LaneBits == 8 || LaneBits == 16,
                "tersum: guard_lanes<LaneBits> has lanes of 4, 8 or 16 bits");
  static_assert(std::same_as<Word, std::uint32_t> || std::same_as<Word, std::uint64_t>,
                "tersum: guard_lanes<LaneBits, Word> is summed as std::uint32_t or std::uint64_t");
  constexpr description describe() const { return {"guard_lanes", LaneBits, sizeof(Word)}; }

  using op                         = native_sum<Word>;
  static constexpr int lane_bits   = LaneBits;
  static constexpr bool biased     = true;  //!< A lane holds code + max_level.
  static constexpr bool saturating = false;

  //! The largest number of ranks whose codes, of magnitudes up to `max_level`, a lane can sum.
  [[nodiscard]] static constexpr int max_world(int max_level) noexcept
  {
    return ((1 << LaneBits) - 1) / (2 * max_level);
  }
};

static_assert(reducer<guard_lanes<8>>, "tersum: must model tersum::reducer");

}  // namespace tersum::inline v0
