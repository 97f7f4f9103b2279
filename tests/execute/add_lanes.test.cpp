// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of packed lanes on the CPU: every instruction set gives what the function object of one word gives.

#include <tersum/execute/instruction_set.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/reduce/saturating_sum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <support/mismatches.hpp>
#include <vector>

namespace {

using tersum::instruction_set;
using tersum::saturating_add;
using tersum::tests::mismatches;
using words = std::vector<std::uint32_t>;

template <int Bits>
void compare(mismatches& wrong, words const& a, words const& b)
{
  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set > tersum::best_instruction_set()) { continue; }
    for (int const threads : {1, 2}) {
      auto const add = [&](std::uint32_t* to, std::uint32_t const* from) {
        tersum::detail::reduce_array(
          threads, set, saturating_add<Bits>{}, to, from, b.data(), b.size());
      };
      words third(a.size()), in_place = a;
      add(third.data(), a.data());
      add(in_place.data(), in_place.data());
      for (std::size_t i = 0; i < a.size(); ++i) {
        std::uint32_t const expected = saturating_add<Bits>{}(a[i], b[i]);
        wrong.expect(third[i], expected, a[i], b[i]);
        wrong.expect(in_place[i], expected, a[i], b[i]);
      }
    }
  }
}

template <int Bits>
void compare_all()
{
  mismatches wrong;
  // Every pair of bytes, each beside others.
  words a, b;
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::uint32_t k = 0; k < 256; ++k) {
      a.push_back(i * 0x01010101u ^ 0xff003c00u);
      b.push_back(k * 0x01010101u ^ 0x00a5ff00u);
    }
  }
  compare<Bits>(wrong, a, b);
  // Every length up to three vectors and a rest.
  std::mt19937 random(17);
  for (std::size_t count = 0; count < 64; ++count) {
    a.resize(count);
    b.resize(count);
    for (auto* const side : {&a, &b}) {
      for (auto& word : *side) { word = static_cast<std::uint32_t>(random()); }
    }
    compare<Bits>(wrong, a, b);
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[add_lanes] sums of all instruction sets have the same bits")
{
  SUBCASE("2 bits") { compare_all<2>(); }
  SUBCASE("4 bits") { compare_all<4>(); }
  SUBCASE("8 bits") { compare_all<8>(); }
  SUBCASE("16 bits") { compare_all<16>(); }
}

}  // namespace
