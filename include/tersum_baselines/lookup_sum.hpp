// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum that a programmable switch or a server makes of table indices: THC.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/packed_codes.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Adds up what table indices stand for: a lookup and an integer addition for each, and nothing else.
//!
//! A lost contribution is replaced by half the granularity, which stands for the value zero. Every sum is then one of
//! all ranks, from which the ranks subtract the same number; what remains is the sum of the contributions that arrived,
//! without bias. (Index zero would stand for the lowest level instead.)
//! @tparam Table     A `lookup_table` whose indices have 1, 2, 4 or 8 bits.
//! @tparam LaneBits  Bits of a sum: 8, 16 or 32.
template <class Table, int LaneBits = 8>
class lookup_sum {
  static_assert(LaneBits == 8 || LaneBits == 16 || LaneBits == 32,
                "tersum: lookup_sum has lanes of 8, 16 or 32 bits");
  static_assert(32 % Table::index_bits == 0 && Table::index_bits <= 8,
                "tersum: lookup_sum has indices of 1, 2, 4 or 8 bits");

 public:
  using table = Table;
  using lanes = packed_codes<LaneBits>;  //!< Of codes and of sums.

  static constexpr int indices    = 32 / Table::index_bits;        //!< In a word, the first lowest.
  static constexpr int code_words = LaneBits / Table::index_bits;  //!< Words of as many codes.
  static constexpr int half = Table::granularity / 2;  //!< Zero, or a contribution that is lost.
  static_assert(code_words > 0, "tersum: lookup_sum needs lanes of no less bits than an index has");

  //! The largest number of ranks whose sum fits a lane.
  static constexpr int max_world =
    static_cast<int>((0xffffffffu >> (32 - LaneBits)) / std::uint32_t{Table::granularity});

  //! @brief At the hop: adds the values of one word's indices.
  constexpr void add(std::uint32_t word) noexcept
  {
    for (int k = 0; k < indices; ++k) {
      sums_[k] += static_cast<std::uint32_t>(
        Table::value[(word >> (Table::index_bits * k)) & (Table::count - 1u)]);
    }
  }

  //! @brief At the hop: stands in for a contribution that did not arrive.
  constexpr void replace() noexcept
  {
    for (std::uint32_t& sum : sums_) { sum += std::uint32_t{half}; }
  }

  //! @brief At the hop: the word of sums that goes down, number `word`, with the sums of the indices in order. At most
  //! `max_world` contributions.
  [[nodiscard]] constexpr std::uint32_t sums(int word) const noexcept
  {
    std::uint32_t packed = 0;
    for (int k = 0; k < lanes::lanes; ++k) {
      packed |= lanes::put(static_cast<std::int32_t>(sums_[word * lanes::lanes + k]), k);
    }
    return packed;
  }

  //! @brief At a rank: the indices of `code_words` words of codes of `lookup_quantizer<Table>`.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t pack(
    std::uint32_t const* codes) noexcept
  {
    std::uint32_t packed = 0;
    TERSUM_UNROLL
    for (int k = 0; k < indices; ++k) {
      std::int32_t const code = lanes::get(codes[k / lanes::lanes], k % lanes::lanes);
      packed |= Table::index_of(code + half) << (Table::index_bits * k);
    }
    return packed;
  }

  //! @brief At a rank: the sums of codes, from a word of sums that came down. Replaced contributions count among the
  //! `world`.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t unpack(std::uint32_t sums,
                                                                         int world) noexcept
  {
    // Lanes are subtracted separately: the highest bit of each is kept out of the carries.
    std::uint32_t const offset =
      lanes::ones * static_cast<std::uint32_t>(lanes::put(-world * half, 0));
    return ((sums & ~lanes::signs) + (offset & ~lanes::signs)) ^ ((sums ^ offset) & lanes::signs);
  }

 private:
  std::uint32_t sums_[detail::extent(indices)] = {};
};

//! @brief What a server does with one packet: sums of `world` contributions, of which null ones are lost and replaced.
//!
//! It runs on the host, for servers on CPUs and as the reference for switches. A packet has any number of whole chunks.
//! @param contributions  The words of indices of each rank, or null if they were lost.
//! @param words          How many words each contribution has.
//! @param sums           Receives words * Sum::code_words words, which go to all ranks, with the number returned.
//! @return  The number of contributions that arrived.
template <class Sum>
constexpr int sum_packet(std::span<std::uint32_t const* const> contributions,
                         std::size_t words,
                         std::uint32_t* sums) noexcept
{
  int arrived = 0;
  for (std::uint32_t const* const from : contributions) { arrived += from != nullptr ? 1 : 0; }
  for (std::size_t i = 0; i < words; ++i) {
    Sum sum;
    for (std::uint32_t const* const from : contributions) {
      from != nullptr ? sum.add(from[i]) : sum.replace();
    }
    for (int k = 0; k < Sum::code_words; ++k) {
      sums[i * Sum::code_words + static_cast<std::size_t>(k)] = sum.sums(k);
    }
  }
  return arrived;
}

}  // namespace tersum::inline v0
