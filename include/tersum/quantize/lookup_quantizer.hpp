// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Unbiased rounding onto integers of a table, whose sums are those of the values: THC.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/lookup_ramps.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/value.hpp>

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

  //! The lowest value that lies below a place in the upper half of the table.
  static constexpr int lowest = value[count / 2 - 1];

  //! Steps from the middle of the table to its end, rounded up to what vectors look up.
  static constexpr int steps = 1 << detail::log2_exact(granularity / 2 + 1);

  //! @brief For each of these steps, as a float's bits, the value of the table that lies at it or below and, in the upper
  //! half of the bits, the distance from there to the next.
  static constexpr std::array<float, detail::extent(steps)> around = [] {
    std::array<float, detail::extent(steps)> out{};
    int number = count / 2 - 1;
    for (int step = 0; step <= granularity / 2; ++step) {
      while (number + 2 < count && value[number + 1] <= granularity / 2 + step) { ++number; }
      int const gap = value[number + 1] - value[number];
      out[static_cast<std::size_t>(step)] =
        detail::bits_float(static_cast<std::uint32_t>(value[number] | gap << 16));
    }
    return out;
  }();

  //! The index of a value of the table, which is the number of values below it.
  TERSUM_HOST_DEVICE static constexpr std::uint32_t index_of(std::int32_t of) noexcept
  {
    // Each value of the table is a bit of a word. Counting the bits up to a value takes fewer instructions than comparisons.
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
  constexpr description describe() const { return {"lookup_quantizer", Table{}, Dither{}}; }

  using table = Table;
  using ramps = detail::lookup_ramps<Table>;  //!< By which kernels do what `encode` does.

  static constexpr int max_level     = Table::granularity / 2;  //!< Codes lie in +-max_level.
  static constexpr int bits          = detail::log2_exact(Table::granularity + 1);  //!< Of a code.
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;

  //! @brief The code of a value. `scale` is 256 over the step, which is the range over max_level; `random` a byte.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE integers_of<Value> encode(
    Value const& value, float scale, words_of<Value> const& random) const noexcept
  {
    static constexpr auto around = Table::around;  // a copy that device code has
    // The magnitude is rounded, not the value, so that x and -x have opposite expectations also at ties. There are 256 steps of a grid
    // of 1/256, without dither. A NaN may be anywhere.
    using grid      = uniform_grid<256 * max_level, 0>;
    auto const size = magnitude_of(value);
    auto const at   = to_integers(grid::field(size, scale, 0u) - grid::low);
    auto const x    = larger(at, 256 * max_level);
    auto const step = to_words(x >> 8) - static_cast<std::uint32_t>(max_level);
    auto const both = to_bits(look_up<Table::steps>(around.data(), step));
    auto const low  = to_integers(both & 0xffffu);
    auto const gap  = to_integers(both >> 16);
    auto const up   = to_integers(random * 2u + 1u) * gap < x * 2 - low * 512;
    auto const code = low + select(up, gap, 0) - max_level;
    auto const sign = to_integers(to_bits(value)) >> 31;
    return (code ^ sign) - sign;
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
