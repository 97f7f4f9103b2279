// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum of many words' lanes with a single saturation at the end.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/packed_codes.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief Adds the lanes of up to `max_words` words exactly and clamps the sums once, to +-(2^(Bits-1) - 1).
//!
//! Use it where one place sees all ranks' payloads. Unlike repeated `saturating_add` it does not depend on the order of
//! the words, and it loses less: in lanes of 4 bits 5 + 6 - 4 is 7, where repeated sums make it 3.
//! @tparam Bits  Lane width: 2, 4 or 8.
template <int Bits>
class saturate_once {
  static_assert(Bits == 2 || Bits == 4 || Bits == 8,
                "tersum: saturate_once<Bits> has lanes of 2, 4 or 8 bits");

  // A lane is made non-negative by flipping its sign bit, and added to a field of four times its width, or of twice its
  // width for lanes of 4 and 8 bits.
  static constexpr int field                = Bits == 8 ? 16 : 8;
  static constexpr int parts                = field / Bits;
  static constexpr std::uint32_t field_full = field == 16 ? 0xffffu : 0xffu;
  static constexpr std::uint32_t field_ones = 0xffffffffu / field_full;
  static constexpr std::uint32_t field_tops = field_ones << (field - 1);
  using lanes                               = packed_codes<Bits>;

 public:
  //! The most words that the fields hold: 85, 17 or 257.
  static constexpr int max_words = static_cast<int>(field_full / lanes::full);

  // `TERSUM_INLINE`, because otherwise clang 14 keeps the sums of two-bit lanes in memory and leaves the loops as they are.

  //! Adds one word.
  TERSUM_INLINE constexpr void add(std::uint32_t word) noexcept
  {
    word ^= lanes::signs;
    TERSUM_UNROLL
    for (int part = 0; part < parts; ++part) {
      sums_[part] += (word >> (Bits * part)) & (field_ones * lanes::full);
    }
  }

  //! @brief The clamped sums as one word.
  //! @param words  How many were added, 0 to `max_words`; the sum of none is zeros.
  [[nodiscard]] TERSUM_INLINE constexpr std::uint32_t result(int words) const noexcept
  {
    if (words == 0) { return 0; }  // there is no centre to clamp about
    // A field holds sum + words 2^(Bits-1): it is clamped to that centre +- limit, then moved to 1 .. 2^Bits - 1.
    bool const small           = static_cast<std::uint32_t>(words) * lanes::full <= field_full / 2;
    std::uint32_t const centre = static_cast<std::uint32_t>(words) << (Bits - 1);
    std::uint32_t const high   = field_ones * (centre + lanes::limit);
    std::uint32_t const low    = field_ones * (centre - lanes::limit);
    std::uint32_t const shift  = field_ones * (centre - (1u << (Bits - 1)));
    std::uint32_t packed       = 0;
    TERSUM_UNROLL
    for (int part = 0; part < parts; ++part) {
      std::uint32_t const above = at_least(sums_[part], high, small);
      std::uint32_t const upper = (sums_[part] & ~above) | (high & above);
      std::uint32_t const in    = at_least(upper, low, small);
      packed |= (((upper & in) | (low & ~in)) - shift) << (Bits * part);
    }
    return packed ^ lanes::signs;
  }

 private:
  //! All ones in the fields where a >= b. `small` says that no field of either has its top bit set.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t at_least(std::uint32_t a,
                                                                           std::uint32_t b,
                                                                           bool small) noexcept
  {
    std::uint32_t const rest = (a | field_tops) - (b & ~field_tops);
    std::uint32_t const tops =
      small ? rest & field_tops : ((a & ~b) | (~(a ^ b) & rest)) & field_tops;
    return (tops >> (field - 1)) * field_full;
  }

  std::uint32_t sums_[detail::extent(parts)] = {};
};

}  // namespace tersum::inline v0
