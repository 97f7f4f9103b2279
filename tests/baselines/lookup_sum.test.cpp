// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of table indices at a server, lane by lane, with every subset of the contributions.

#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum_baselines/lookup_sum.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace tersum;

namespace {

// Indices at random, and all lowest or all highest in the first words, where sums are least and largest.
template <class Table, int LaneBits>
void check_every_subset(int world)
{
  using sum = lookup_sum<Table, LaneBits>;
  REQUIRE(world <= sum::max_world);
  constexpr std::size_t words = 12, lanes = words * sum::indices;
  std::mt19937 random(31);
  for (unsigned subset = 0; subset < 1u << world; ++subset) {
    CAPTURE(subset);
    std::vector<std::vector<std::uint32_t>> sent(static_cast<std::size_t>(world));
    std::vector<std::uint32_t const*> arriving;
    std::vector<int> direct(lanes);
    int expected = 0;
    for (int rank = 0; rank < world; ++rank) {
      auto& codes = sent[static_cast<std::size_t>(rank)];
      std::vector<std::uint32_t> packed(words * sum::code_words);
      bool const arrives = (subset >> rank & 1) != 0;
      for (std::size_t i = 0; i < lanes; ++i) {
        std::uint32_t const any   = static_cast<std::uint32_t>(random()) % Table::count;
        std::uint32_t const index = i < 32 ? 0 : i < 64 ? Table::count - 1u : any;
        int const code            = Table::value[index] - sum::half;
        packed[i / sum::lanes::lanes] |=
          sum::lanes::put(code, static_cast<int>(i % sum::lanes::lanes));
        if (arrives) { direct[i] += code; }
      }
      for (std::size_t i = 0; i < words; ++i) {
        codes.push_back(sum::pack(packed.data() + i * sum::code_words));
      }
      arriving.push_back(arrives ? codes.data() : nullptr);
      expected += arrives ? 1 : 0;
    }
    std::vector<std::uint32_t> down(words * sum::code_words);
    REQUIRE(sum_packet<sum>(arriving, words, down.data()) == expected);
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint32_t const word = sum::unpack(down[i / sum::lanes::lanes], world);
      REQUIRE(sum::lanes::get(word, static_cast<int>(i % sum::lanes::lanes)) == direct[i]);
    }
  }
}

}  // namespace

TEST_CASE("[lookup] sums at a server equal the direct ones, whatever contributions are missing")
{
  static_assert(lookup_sum<thc_table_42>::max_world == 6);
  static_assert(lookup_sum<thc_table_42, 16>::max_world == 1560);
  static_assert(lookup_sum<thc_table_42, 32>::max_world == 102'261'126);
  check_every_subset<thc_table_42, 8>(4);
  check_every_subset<thc_table_42, 8>(6);
  check_every_subset<thc_table_30, 16>(5);
  check_every_subset<thc_table_42, 32>(5);
  check_every_subset<lookup_table<0, 1, 3, 4>, 8>(4);
  check_every_subset<lookup_table<0, 2>, 8>(3);
}

TEST_CASE("[lookup] lanes of 32 bits hold sums of as many ranks as a plan takes, and more")
{
  using sum           = lookup_sum<thc_table_42, 32>;
  constexpr int world = 65534;
  sum all;
  // Of the indices of a word one is always the highest, one the lowest, one lost, the others any. What a lane of 16 bits cannot hold.
  std::array<std::int64_t, 8> direct{};
  std::mt19937 random(3);
  for (int rank = 0; rank < world; ++rank) {
    std::uint32_t const word = (static_cast<std::uint32_t>(random()) & 0xffffff00u) | 0x0fu;
    for (unsigned k = 0; k < 8; ++k) { direct[k] += thc_table_42::value[word >> 4 * k & 15u]; }
    all.add(word);
  }
  all.replace();
  for (int k = 0; k < 8; ++k) {
    std::uint32_t const code = sum::unpack(all.sums(k), world + 1);
    CHECK(sum::lanes::get(code, 0) ==
          direct[static_cast<std::size_t>(k)] - std::int64_t{world} * sum::half);
  }
  CHECK(direct[0] == 42 * std::int64_t{world});
  CHECK(direct[1] == 0);

  // At the bound all lanes are highest or lowest, in numbers of 64 bits; one rank more would be beyond both kinds of lanes.
  constexpr std::int64_t bound = sum::max_world;
  static_assert(bound * 42 <= 0xffffffff && (bound + 1) * 42 > 0xffffffff);
  static_assert(bound * 21 <= 0x7fffffff && (bound + 1) * 21 > 0x7fffffff);
  static_assert(bound > world);
  auto const highest = static_cast<std::uint32_t>(bound * 42);
  CHECK(sum::lanes::get(sum::unpack(highest, sum::max_world), 0) == bound * 21);
  CHECK(sum::lanes::get(sum::unpack(0, sum::max_world), 0) == -bound * 21);
}

TEST_CASE("[lookup] the first index of a word is its lowest bits, and so are sums")
{
  using sum = lookup_sum<thc_table_42>;
  static_assert(sum::indices == 8 && sum::code_words == 2);
  // Codes 21, -21, 1, -1, 5, -5, 3, -3 are the levels 42, 0, 22, 20, 26, 16, 24, 18.
  constexpr std::array<std::uint32_t, 2> codes{0xff01eb15u, 0xfd03fb05u};
  CHECK(sum::pack(codes.data()) == 0x695a780fu);
  sum two;
  two.add(0x695a780fu);
  two.replace();  // 21 more in every lane
  CHECK(two.sums(0) == 0x292b153fu);
  CHECK(two.sums(1) == 0x272d252fu);
  CHECK(sum::unpack(two.sums(0), 2) == codes[0]);
  CHECK(sum::unpack(two.sums(1), 2) == codes[1]);
}
