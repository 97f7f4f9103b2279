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

namespace tersum::inline v0 {

//! @brief A table of THC: 2^q integers from 0 to an even granularity, strictly increasing, symmetric about its half.
//!
//! Where values are normal, levels close to zero in smaller steps have less error than even ones. A table that is optimal
//! for its granularity and range comes from dynamic programming over the granularity: tests/quantize/lookup_quantizer has it.
template <int... Values>
struct lookup_table {
  static constexpr int count = sizeof...(Values);
  static constexpr int value[count]{Values...};
  static constexpr int granularity = value[count - 1];

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

  //! The largest value that is not above x, and the least that is not below; in units of 1/256. 0 <= x <= 256 granularity.
  TERSUM_HOST_DEVICE static constexpr void enclose(std::int32_t x,
                                                   std::int32_t& low,
                                                   std::int32_t& high) noexcept
  {
    low  = 0;
    high = 256 * granularity;
    ((256 * Values <= x ? low = detail::maximum(low, 256 * Values) : 0), ...);
    ((256 * Values >= x ? high = detail::minimum(high, 256 * Values) : 0), ...);
  }
};

//! @brief Rounds up or down, at random, to a value of the table: a code is that value less half the granularity.
//!
//! Codes are integers that add up: in lanes wide enough for all ranks (`widening_sum`, `guard_lanes`) the transport sums
//! them, and a transport that can look up (see `lookup_sum`) sends table indices up and gets sums of values down. The
//! value is rounded to 1/256 of a step, ties to even, and its place between two levels to 1/256, odd in the value.
//! Source: Li et al., THC: Accelerating Distributed Deep Learning Using Tensor Homomorphic Compression (NSDI'24).
//! @tparam Table   A `lookup_table`.
//! @tparam Dither  `independent` or `stratified`.
template <class Table, dither_source Dither = independent>
struct lookup_quantizer {
  using dither = Dither;
  using table  = Table;

  static constexpr int max_level     = Table::granularity / 2;  //!< Codes lie in +-max_level.
  static constexpr int bits          = detail::log2_exact(Table::granularity + 1);  //!< Of a code.
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;

  //! @brief The code of one value. `scale` is 256 over the step, which is the range over max_level; `random` a byte.
  [[nodiscard]] TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                                       float scale,
                                                       std::uint32_t random) const noexcept
  {
    // Of the magnitude, so that the expectation is odd whatever ties there are.
    std::uint32_t const bits_of = detail::float_bits(value);
    float const magnitude       = detail::bits_float(bits_of & 0x7fffffffu);
    // 256 steps of a grid of 1/256, without dither.
    std::int32_t const x = round_to_grid<256 * max_level, 0>(magnitude, scale, 0) + 256 * max_level;
    std::int32_t low, high;
    Table::enclose(x, low, high);
    bool const up = static_cast<std::int32_t>(2 * random + 1) * (high - low) < 512 * (x - low);
    std::int32_t const code = (up ? high : low) / 256 - max_level;
    return bits_of >> 31 != 0 ? -code : code;
  }
};

//! @brief What a switch or a server does with the ranks' indices: a table lookup and an integer addition for each.
//!
//! Sums are exact in lanes of `LaneBits`; whoever decodes subtracts half the granularity for every contribution. One that
//! is lost is replaced by half the granularity, which is the code of zero and biases nothing; the mean is then that of
//! those that arrived.
//! @tparam Table     A `lookup_table`.
//! @tparam LaneBits  Bits of a sum: 8 or 16.
template <class Table, int LaneBits = 8>
class lookup_sum {
  static_assert(LaneBits == 8 || LaneBits == 16, "tersum: lookup_sum has lanes of 8 or 16 bits");

 public:
  static constexpr int lanes = 32 / Table::index_bits;  //!< Indices in a word, the first lowest.

  //! The most contributions that a lane holds.
  static constexpr int max_world = ((1 << LaneBits) - 1) / Table::granularity;

  //! @brief Adds the values of one word's indices.
  constexpr void add(std::uint32_t word) noexcept
  {
    for (int k = 0; k < lanes; ++k) {
      std::uint32_t const index = (word >> (Table::index_bits * k)) & (Table::count - 1u);
      sums_[k]                  = static_cast<std::uint16_t>(sums_[k] + Table::value[index]);
    }
  }

  //! @brief Stands in for a contribution that did not arrive.
  constexpr void replace() noexcept
  {
    for (std::uint16_t& sum : sums_) {
      sum = static_cast<std::uint16_t>(sum + Table::granularity / 2);
    }
  }

  //! The sum of lane k.
  [[nodiscard]] constexpr int sum(int k) const noexcept { return sums_[k]; }

  //! @brief The mean that a sum stands for, in units of the step.
  //! @param sum      Of `world` contributions, those that were replaced among them.
  //! @param arrived  Contributions that were not replaced, at least 1.
  [[nodiscard]] static constexpr float mean(int sum, int world, int arrived) noexcept
  {
    return static_cast<float>(sum - world * (Table::granularity / 2)) / static_cast<float>(arrived);
  }

  //! The index of a code of `lookup_quantizer<Table>`.
  [[nodiscard]] static constexpr std::uint32_t index_of(std::int32_t code) noexcept
  {
    std::uint32_t index = 0;
    while (Table::value[index] < code + Table::granularity / 2) { ++index; }
    return index;
  }

 private:
  std::uint16_t sums_[lanes] = {};
};

//! @name Tables of 16 levels that Li et al. released
//! Range and granularity: of the two-sided share of a normal distribution outside, 1/32 and 30, 1/1024 and 42.
//! @{
using thc_table_30 = lookup_table<0, 3, 5, 7, 9, 11, 13, 14, 16, 17, 19, 21, 23, 25, 27, 30>;
using thc_table_42 = lookup_table<0, 6, 9, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 33, 36, 42>;
//! @}

static_assert(quantizer<lookup_quantizer<thc_table_42>>, "tersum: must model tersum::quantizer");

}  // namespace tersum::inline v0
