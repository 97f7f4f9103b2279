// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Unbiased rounding onto integers of a table, whose sums are those of the values: THC.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/uniform_grid.hpp>

#include <cstdint>
#include <utility>

namespace tersum::inline v0 {

//! @brief A table of THC: 2^q integers from 0 to an even granularity, strictly increasing, symmetric about its half.
//!
//! For normal values, levels that are denser near zero have less error than even ones. Dynamic programming finds the
//! best table for a granularity and a range: see tests/quantize/lookup_quantizer.test.cpp.
template <int... Values>
struct lookup_table {
  static constexpr int count = sizeof...(Values);
  static constexpr int value[detail::extent(count)]{Values...};
  static constexpr int granularity = value[count - 1];
  constexpr description describe() const { return {"lookup_table", Values...}; }

  //! Bits of an index.
  static constexpr int index_bits = detail::log2_exact(count);

  static constexpr bool sound = [] {
    bool result = count == 1 << index_bits && value[0] == 0 && granularity % 2 == 0;
    for (int i = 0; i + 1 < count; ++i) {
      result = result && value[i] < value[i + 1] && value[i] + value[count - 1 - i] == granularity;
    }
    return result;
  }();
  static_assert(sound,
                "tersum: lookup_table<Values...> needs a power of two of values that ascend from 0 "
                "to an even number, symmetric about its half");

  //! Two neighbours in the table and what lies between them.
  struct interval {
    std::int32_t low;  //!< The value below.
    std::int32_t gap;  //!< From there to the next.
  };

  //! The lowest value that `enclose` gives.
  static constexpr int lowest = value[count / 2 - 1];

  //! @brief Between which neighbours x / 256 lies, in the upper half of the table: granularity / 2 <= x / 256 <=
  //! granularity.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr interval enclose(std::int32_t x) noexcept
  {
    return unpack(enclose_packed(x));
  }

  //! The same neighbours in one number, which takes a comparison and a selection for each level.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::int32_t enclose_packed(
    std::int32_t x) noexcept
  {
    return find(x, std::make_integer_sequence<int, count / 2 - 1>{});
  }

  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr interval unpack(std::int32_t both) noexcept
  {
    return {both & 0xffff, both >> 16};
  }

  //! The index of a value of the table, which is the number of values below it.
  TERSUM_HOST_DEVICE static constexpr std::uint32_t index_of(std::int32_t of) noexcept
  {
    // Each value of the table is a bit of a word. Counting the bits up to a value takes fewer instructions than comparing
    // with each value.
    int up_to = 0;
    TERSUM_UNROLL
    for (int first = 0; first <= granularity; first += 64) {
      std::uint64_t const present =
        ((Values / 64 == first / 64 ? std::uint64_t{1} << (Values % 64) : 0) | ...);
      std::int32_t const last = granularity < 64 ? of : detail::minimum(of - first, 63);
      if (granularity >= 64 && last < 0) { break; }
      up_to += __builtin_popcountll(present << ((63 - last) & 63));
    }
    return static_cast<std::uint32_t>(up_to - 1);
  }

 private:
  template <int Index>
  static constexpr std::int32_t pair = value[Index] + ((value[Index + 1] - value[Index]) << 16);
  template <int Index>
  static constexpr std::int32_t begin = 256 * value[Index];

  template <int... Level>
  TERSUM_HOST_DEVICE static constexpr std::int32_t find(
    std::int32_t x, std::integer_sequence<int, Level...>) noexcept
  {
    std::int32_t both = pair<count / 2 - 1>;
    ((both = x >= begin<count / 2 + Level> ? pair<count / 2 + Level> : both), ...);
    return both;
  }
};

//! @brief Rounds up or down, at random, to a value of the table: a code is that value less half the granularity.
//!
//! Codes are integers that add up: the transport sums them in lanes wide enough for all ranks (`widening_sum`,
//! `guard_lanes`). A transport that can look up gets table indices and returns sums of values: see `pack_indices`. The
//! value is rounded to 1/256 of a step, ties to even, and its place between two levels to 1/256, so that the expectation
//! of -x is that of x, negated. No level is zero: a zero becomes one of the two levels beside it. Source: Li et al., THC:
//! Accelerating Distributed Deep Learning Using Tensor Homomorphic Compression (NSDI'24).
//! @tparam Table   A `lookup_table`.
//! @tparam Dither  `independent` or `stratified`.
template <class Table, dither_source Dither = independent>
struct lookup_quantizer {
  using dither = Dither;
  using table  = Table;
  constexpr description describe() const { return {"lookup_quantizer", Table{}, Dither{}}; }

  static constexpr int max_level     = Table::granularity / 2;  //!< Codes lie in +-max_level.
  static constexpr int bits          = detail::log2_exact(Table::granularity + 1);  //!< Of a code.
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;

  //! @brief The code of one value. `scale` is 256 over the step, which is the range over max_level; `random` a byte.
  [[nodiscard]] TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                                       float scale,
                                                       std::uint32_t random) const noexcept
  {
    std::int32_t const x = place(value, scale);
    return choose(x, Table::enclose(x), value, random);
  }

  //! @brief 256 times the place of a value's magnitude in the table, which is in its upper half.
  [[nodiscard]] TERSUM_HOST_DEVICE static std::int32_t place(float value, float scale) noexcept
  {
    // The magnitude is rounded, not the value, so that x and -x have opposite expectations also at ties.
    float const magnitude = detail::bits_float(detail::float_bits(value) & 0x7fffffffu);
    // 256 steps of a grid of 1/256, without dither.
    return round_to_grid<256 * max_level, 0>(magnitude, scale, 0) + 256 * max_level;
  }

  //! @brief The code of a value whose place is x, between these two.
  [[nodiscard]] TERSUM_HOST_DEVICE static std::int32_t choose(std::int32_t x,
                                                              typename Table::interval between,
                                                              float value,
                                                              std::uint32_t random) noexcept
  {
    auto const [low, gap]   = between;
    bool const up           = static_cast<std::int32_t>(2 * random + 1) * gap < 2 * x - 512 * low;
    std::int32_t const code = low + (up ? gap : 0) - max_level;
    return detail::float_bits(value) >> 31 != 0 ? -code : code;
  }
};

//! @name Tables of 16 levels that Li et al. released
//! The first leaves 1/32 of a normal distribution outside its range, on both sides together, and has the granularity 30.
//! The second leaves 1/1024 outside, and has the granularity 42.
//! @{
using thc_table_30 = lookup_table<0, 3, 5, 7, 9, 11, 13, 14, 16, 17, 19, 21, 23, 25, 27, 30>;
using thc_table_42 = lookup_table<0, 6, 9, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 33, 36, 42>;
//! @}

static_assert(quantizer<lookup_quantizer<thc_table_42>>, "tersum: must model tersum::quantizer");

}  // namespace tersum::inline v0
