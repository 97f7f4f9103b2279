// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Numbers that every encoding in groups with scales of their own computes with.

#pragma once

#include <tersum/config.hpp>
#include <tersum/random/philox.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

inline constexpr std::uint32_t block_one = 1u << 20;  //!< A block's scale in fixed point.

//! @brief Groups with a smaller scale decode to zeros, since `block_one` over the scale would not be finite.
inline constexpr float least_block = 0x1p-107f;

//! @brief The threshold beyond which `group_absmax::round` rounds up: from a byte of a draw of sixteen, or, without dither,
//! half of the distance.
template <class Dither>
[[nodiscard]] TERSUM_INLINE std::uint32_t threshold_of(philox_block const& draw,
                                                       std::uint32_t mask,
                                                       int byte) noexcept
{
  if constexpr (Dither::rounds == 0) {
    return 256;
  } else {
    std::uint32_t const word = draw.word[byte / 4] ^ mask;
    return ((word >> (8 * (byte % 4))) & 0xffu) * 2 + 1;
  }
}

}  // namespace tersum::inline v0::detail
