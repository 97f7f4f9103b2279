// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How kernels round two values in a word to a table of THC.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! @brief `lookup_quantizer` without comparisons: a sum of ramps, whose upper bits name a lane that holds the level.
//!
//! In the upper half of the table, M is the least common multiple of its gaps, and t is 256 times a value's magnitude, at most 256
//! max_level. z(t) grows by M / gap for each unit of t. So it is 256 M times the number of the level where t is at a level, linear between
//! two, and a sum of multiples of t and of min(t, end of a gap). A value is rounded up if (2 random + 1) gap < 2 (t - t of the level),
//! which is if z - z of the level is at least M random + M/2 + 1. So the number of its level is z + 256 M - M random - M/2 - 1 over 256 M,
//! rounded down. Where M is odd times a power of two, that power and 256 are a shift, and a level has as many lanes as the odd factor.
template <class Table>
struct lookup_ramps {
  static constexpr int half      = Table::count / 2;
  static constexpr int max_level = Table::granularity / 2;

  [[nodiscard]] static constexpr int gap(int k) noexcept
  {
    return Table::value[half + k] - Table::value[half - 1 + k];
  }
  static constexpr int multiple = [] {
    int all = 1;
    for (int k = 0; k < half; ++k) { all = std::lcm(all, gap(k)); }
    return all;
  }();
  template <int K>
  static constexpr int slope = multiple / gap(K);

  static constexpr int shift    = 8 + log2_exact(static_cast<unsigned>(multiple & -multiple));
  static constexpr int per_code = (256 * multiple) >> shift;  //!< Lanes of a level.

  //! What is added to t, so that the ramps bring what else belongs to the sum; random bytes are subtracted by adding what
  //! they lack to 255. It is even, so that ties still go to even numbers, and may shift the levels by some lanes.
  struct start {
    int added, lanes;
  };
  static constexpr start begin = [] {
    int const rest = 256 * slope<0> * (max_level - Table::lowest) + multiple - multiple / 2 - 1;
    for (int lanes = 0; lanes < 32; ++lanes) {
      int const sum = rest + (lanes << shift);
      if (sum % (2 * slope<0>) == 0) { return start{sum / slope<0>, lanes}; }
    }
    return start{0, 32};
  }();

  //! Whether the lanes of a warp and halves of words suffice.
  static constexpr bool serves = begin.lanes + per_code * (half + 1) <= 32 && shift <= 11;

  //! @brief The value of the table that a lane has.
  [[nodiscard]] TERSUM_INLINE static std::uint32_t of_lane(unsigned lane)
  {
    return of_lane(lane, std::make_integer_sequence<int, half>{});
  }

  //! Bits of a float that adds `added` to t; its low half is an integer.
  static constexpr std::uint32_t zero = 0x4b400000u + static_cast<std::uint32_t>(begin.added);

  //! @brief t of a value, with `added`, in the low half of a word. NaN is the largest.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t place(float value, float scale)
  {
    constexpr std::uint32_t last = zero + 256u * max_level;
    // The magnitude is rounded, not the value: see `lookup_quantizer::place`.
    float const magnitude = Context::from_bits(Context::bits(value) & 0x7fffffffu);
    float const shifted =
      Context::fma(magnitude, scale, 12582912.0f + static_cast<float>(begin.added));
    return minimum(Context::bits(shifted), last);
  }

  //! @brief z of the t in both halves of a word, or, if `Pair` is false, of that in the low half.
  template <class Context, bool Pair>
  [[nodiscard]] TERSUM_BODY static std::uint32_t sum(std::uint32_t t)
  {
    return sum<Context, Pair>(t, std::make_integer_sequence<int, half - 1>{});
  }

  //! @brief Values of the table in both halves of a word, mirrored where the half of `minus` is all ones.
  [[nodiscard]] TERSUM_BODY static std::uint32_t mirror(std::uint32_t values, std::uint32_t minus)
  {
    // ones - value is a flip of bits, which borrows nothing.
    constexpr std::uint32_t ones =
      (1u << log2_exact(static_cast<unsigned>(Table::granularity) + 1)) - 1;
    return (values ^ (minus & 0x00010001u * ones)) -
           (minus & 0x00010001u * (ones - static_cast<std::uint32_t>(Table::granularity)));
  }

 private:
  //! The value at the end of gap K.
  template <int K>
  static constexpr std::uint32_t value_of = static_cast<std::uint32_t>(Table::value[half + K]);

  template <int... K>
  TERSUM_INLINE static std::uint32_t of_lane(unsigned lane, std::integer_sequence<int, K...>)
  {
    std::uint32_t value = Table::lowest;
    ((value =
        lane >= static_cast<unsigned>(begin.lanes + (K + 1) * per_code) ? value_of<K> : value),
     ...);
    return value;
  }

  template <class Context, bool Pair, int... K>
  TERSUM_BODY static std::uint32_t sum(std::uint32_t t, std::integer_sequence<int, K...>)
  {
    return ((static_cast<std::uint32_t>(slope<half - 1>) * t) + ... + ramp<Context, Pair, K>(t));
  }

  //! By how much the slope falls at the end of gap K, times t up to there.
  template <class Context, bool Pair, int K>
  TERSUM_BODY static std::uint32_t ramp(std::uint32_t t)
  {
    constexpr int fall = slope<K> - slope<K + 1>;
    constexpr auto end = 256 * (value_of<K> - static_cast<std::uint32_t>(max_level));
    if constexpr (fall == 0) {
      return 0;
    } else if constexpr (Pair) {
      constexpr std::uint32_t at = end + static_cast<std::uint32_t>(begin.added);
      return static_cast<std::uint32_t>(fall) * Context::min_pair(t, 0x00010001u * at);
    } else {
      return static_cast<std::uint32_t>(fall) * minimum(t, zero + end);
    }
  }
};

}  // namespace tersum::inline v0::detail
