// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes as two's-complement lanes of 2, 4, 8, 16 or 32 bits in 32-bit words. Part of the wire format.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief Lanes of `Bits` bits: lane k of a word holds bits k Bits .. (k+1) Bits - 1, two's complement.
//! @tparam Bits  2, 4, 8, 16 or 32.
template <int Bits>
struct packed_codes {
  static_assert(Bits == 2 || Bits == 4 || Bits == 8 || Bits == 16 || Bits == 32,
                "tersum: packed_codes<Bits> has lanes of 2, 4, 8, 16 or 32 bits");

  static constexpr int bits  = Bits;       //!< Width of a lane.
  static constexpr int lanes = 32 / Bits;  //!< Lanes in a word.
  static constexpr int limit =
    static_cast<int>(0x7fffffffu >> (32 - Bits));  //!< Largest magnitude of the symmetric range.
  static constexpr std::uint32_t full  = 0xffffffffu >> (32 - Bits);  //!< One whole lane.
  static constexpr std::uint32_t ones  = 0xffffffffu / full;  //!< The lowest bit of every lane.
  static constexpr std::uint32_t signs = ones << (Bits - 1);  //!< The highest bit of every lane.

  //! The code in a lane, sign extended.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::int32_t get(std::uint32_t word,
                                                                     int lane) noexcept
  {
    return static_cast<std::int32_t>(word << (32 - Bits * (lane + 1))) >> (32 - Bits);
  }

  //! A code moved into its lane, zeros elsewhere.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t put(std::int32_t code,
                                                                      int lane) noexcept
  {
    return (static_cast<std::uint32_t>(code) & full) << (Bits * lane);
  }

  //! Words that `count` codes occupy.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint64_t words(
    std::uint64_t count) noexcept
  {
    return (count + lanes - 1) / lanes;
  }
};

}  // namespace tersum::inline v0
