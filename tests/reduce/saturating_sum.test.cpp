// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The saturating sum of lanes against a scalar loop: all pairs of codes in all lanes, whatever the neighbours.

#include "conformance/reducer_conformance.hpp"
#include "support/mismatches.hpp"

#include <tersum/quantize/packed_codes.hpp>
#include <tersum/reduce/saturating_sum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using tersum::packed_codes;
using tersum::saturating_add;
using tersum::saturating_sum;
using tersum::tests::mismatches;

// The number in bits [first, first + bits) of a word, two's complement.
std::int64_t field(std::uint32_t word, int first, int bits)
{
  std::int64_t const span  = std::int64_t{1} << bits;
  std::int64_t const digit = (std::int64_t{word} >> first) % span;
  return digit < span / 2 ? digit : digit - span;
}

// One lane at a time, in 64-bit integers.
template <int Bits>
std::uint32_t reference(std::uint32_t a, std::uint32_t b)
{
  std::int64_t const limit = (std::int64_t{1} << (Bits - 1)) - 1;
  std::uint32_t result     = 0;
  for (int first = 0; first < 32; first += Bits) {
    std::int64_t const sum =
      std::clamp(field(a, first, Bits) + field(b, first, Bits), -limit, limit);
    std::uint32_t const digits = static_cast<std::uint32_t>(sum) & (0xffffffffu >> (32 - Bits));
    result |= digits << first;
  }
  return result;
}

template <int Bits>
void compare(mismatches& wrong, std::uint32_t a, std::uint32_t b)
{
  saturating_add<Bits> const add;
  wrong.expect(add(a, b), reference<Bits>(a, b), a, b);
  wrong.expect(add(b, a), reference<Bits>(a, b), b, a);
}

// Puts `pattern` of `bits` bits at `first` into a word.
std::uint32_t insert(std::uint32_t word, std::uint32_t pattern, int first, int bits)
{
  std::uint32_t const mask = (0xffffffffu >> (32 - bits)) << first;
  return (word & ~mask) | (pattern << first);
}

// What surrounds the lanes under test: extremes that would carry into them, and random words.
std::vector<std::uint32_t> surroundings(std::mt19937& random)
{
  std::vector<std::uint32_t> words = {0u,
                                      ~0u,
                                      0x55555555u,
                                      0xaaaaaaaau,
                                      0x77777777u,
                                      0x88888888u,
                                      0x7f7f7f7fu,
                                      0x80808080u,
                                      0x7fff7fffu,
                                      0x80008000u};
  for (int i = 0; i < 6; ++i) { words.push_back(static_cast<std::uint32_t>(random())); }
  return words;
}

TEST_CASE_TEMPLATE(
  "[saturating_sum] every pair of codes in every lane, among all kinds of neighbours",
  Lanes,
  packed_codes<2>,
  packed_codes<4>,
  packed_codes<8>)
{
  constexpr int bits = Lanes::bits;
  std::mt19937 random(47);
  auto const around = surroundings(random);
  mismatches wrong;
  for (int first = 0; first < 32; first += bits) {
    for (std::uint32_t pair = 0; pair < (1u << (2 * bits)); ++pair) {
      std::uint32_t const a = pair & Lanes::full, b = pair >> bits;
      for (std::uint32_t const word : around) {
        compare<bits>(wrong, insert(word, a, first, bits), insert(word, b, first, bits));
        compare<bits>(wrong, insert(word, a, first, bits), insert(~word, b, first, bits));
      }
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE_TEMPLATE("[saturating_sum] every pair of neighbouring lanes at once",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>)
{
  // Four codes are all there is for a carry from one lane to the next to depend on.
  constexpr int bits = Lanes::bits;
  mismatches wrong;
  std::mt19937 random(53);
  for (int first = 0; first + 2 * bits <= 32; first += bits) {
    for (std::uint32_t codes = 0; codes < (1u << (4 * bits)); ++codes) {
      auto const word              = static_cast<std::uint32_t>(random());
      std::uint32_t const two_full = 0xffffffffu >> (32 - 2 * bits);
      compare<bits>(wrong,
                    insert(word, codes & two_full, first, 2 * bits),
                    insert(word, codes >> (2 * bits), first, 2 * bits));
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[saturating_sum] lanes of 16 bits: all pairs of corners, and samples")
{
  std::vector<std::uint32_t> corners;
  for (std::uint32_t const near :
       {0u, 1u, 0x3fffu, 0x4000u, 0x7fffu, 0x8000u, 0x8001u, 0xbfffu, 0xc000u, 0xffffu}) {
    for (std::uint32_t const code : {near - 1, near, near + 1}) {
      corners.push_back(code & 0xffffu);
    }
  }
  mismatches wrong;
  std::mt19937 random(59);
  auto const around = surroundings(random);
  for (int const first : {0, 16}) {
    for (std::uint32_t const a : corners) {
      for (std::uint32_t const b : corners) {
        for (std::uint32_t const word : around) {
          compare<16>(wrong, insert(word, a, first, 16), insert(word, b, first, 16));
          compare<16>(wrong, insert(word, a, first, 16), insert(~word, b, first, 16));
        }
      }
    }
  }
  for (int i = 0; i < 1000000; ++i) {
    compare<16>(wrong, static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()));
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[saturating_sum] is known at compile time")
{
  static_assert(saturating_add<4>{}(0x00000007u, 0x00000001u) == 0x00000007u);
  static_assert(saturating_add<4>{}(0x0000000fu, 0x00000009u) == 0x00000009u);  // -1 + -7
  static_assert(saturating_add<4>{}(0x70000000u, 0x90000000u) == 0);
  static_assert(saturating_sum<4>::max_world(7) == std::numeric_limits<int>::max());
}

TEST_CASE_TEMPLATE("[saturating_sum] obeys the laws of a reducer",
                   Reducer,
                   saturating_sum<2>,
                   saturating_sum<4>,
                   saturating_sum<8>,
                   saturating_sum<16>)
{
  tersum::tests::check_reduce_op_laws<typename Reducer::op>();
  for (int const level : {1, packed_codes<Reducer::lane_bits>::limit}) {
    tersum::tests::check_reducer_laws<Reducer>(level);
  }
}

}  // namespace
