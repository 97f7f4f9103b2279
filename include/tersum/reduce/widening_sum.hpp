// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes in lanes that are wide enough for the sum of all ranks, and which any transport adds as native integers.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/reduce/native.hpp>

namespace tersum::inline v0 {

//! @brief Codes of q bits in native integers of b bits, whose sum is exact. The plan checks that the sum of all ranks fits.
//! @tparam CodeBits  Width of a code, 2 to 8.
//! @tparam LaneBits  Width of the integers on the wire: 8, 16 or 32.
template <int CodeBits, int LaneBits>
struct widening_sum {
  static_assert(
    LaneBits == 8 || LaneBits == 16 || LaneBits == 32,
    "tersum: widening_sum<CodeBits, LaneBits> sums native integers of 8, 16 or 32 bits");
  static_assert(
    CodeBits >= 2 && CodeBits <= 8 && CodeBits <= LaneBits,
    "tersum: widening_sum<CodeBits, LaneBits> needs 2 <= CodeBits <= 8 and no more than LaneBits");
  constexpr description describe() const { return {"widening_sum", CodeBits, LaneBits}; }

  using op =
    native_sum<std::conditional_t<LaneBits == 8,
                                  std::int8_t,
                                  std::conditional_t<LaneBits == 16, std::int16_t, std::int32_t>>>;
  static constexpr int code_bits   = CodeBits;
  static constexpr int lane_bits   = LaneBits;
  static constexpr bool biased     = false;
  static constexpr bool saturating = false;

  //! The largest number of ranks whose codes, of magnitudes up to `max_level`, a lane can sum.
  [[nodiscard]] static constexpr int max_world(int max_level) noexcept
  {
    return static_cast<int>(0x7fffffffu >> (32 - LaneBits)) / max_level;
  }
};

static_assert(reducer<widening_sum<4, 8>>, "tersum: must model tersum::reducer");

}  // namespace tersum::inline v0
