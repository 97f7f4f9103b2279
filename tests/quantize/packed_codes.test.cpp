// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Lanes in words, over every lane and every code.

#include "support/mismatches.hpp"

#include <tersum/quantize/packed_codes.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>

namespace {

using tersum::packed_codes;
using tersum::tests::mismatches;

// The lane of a word from the definition: a number of so many binary digits, two's complement.
std::int64_t lane_of(std::uint32_t word, int lane, int bits)
{
  std::int64_t const span  = std::int64_t{1} << bits;
  std::int64_t const digit = (std::int64_t{word} >> (lane * bits)) % span;
  return digit < span / 2 ? digit : digit - span;
}

TEST_CASE_TEMPLATE("[packed_codes] every code in every lane comes back, and other lanes stay zero",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>,
                   packed_codes<8>,
                   packed_codes<16>)
{
  mismatches wrong;
  for (int lane = 0; lane < Lanes::lanes; ++lane) {
    for (std::int32_t code = -Lanes::limit - 1; code <= Lanes::limit; ++code) {
      std::uint32_t const word = Lanes::put(code, lane);
      for (int other = 0; other < Lanes::lanes; ++other) {
        std::int32_t const want = other == lane ? code : 0;
        wrong.expect(Lanes::get(word, other), want, code, lane, other);
        wrong.expect(lane_of(word, other, Lanes::bits), std::int64_t{want}, code, lane, other);
      }
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE_TEMPLATE("[packed_codes] any word is its lanes put together",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>,
                   packed_codes<8>,
                   packed_codes<16>)
{
  mismatches lanes, words;
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) {
    auto const word      = static_cast<std::uint32_t>(random());
    std::uint32_t joined = 0;
    for (int lane = 0; lane < Lanes::lanes; ++lane) {
      std::int32_t const code = Lanes::get(word, lane);
      lanes.expect(std::int64_t{code}, lane_of(word, lane, Lanes::bits), word, lane);
      joined |= Lanes::put(code, lane);
    }
    words.expect(joined, word, word);
  }
  CHECK(lanes.report() == "");
  CHECK(words.report() == "");
}

TEST_CASE_TEMPLATE(
  "[packed_codes] masks have the bits that their names say; words is the least number that holds so many codes",
  Lanes,
  packed_codes<2>,
  packed_codes<4>,
  packed_codes<8>,
  packed_codes<16>)
{
  CHECK(Lanes::lanes * Lanes::bits == 32);
  CHECK(Lanes::put(-1, 0) == Lanes::full);
  CHECK(Lanes::get(Lanes::full >> 1, 0) == Lanes::limit);
  for (int bit = 0; bit < 32; ++bit) {
    CAPTURE(bit);
    CHECK(((Lanes::ones >> bit) & 1u) == (bit % Lanes::bits == 0 ? 1u : 0u));
    CHECK(((Lanes::signs >> bit) & 1u) == (bit % Lanes::bits == Lanes::bits - 1 ? 1u : 0u));
  }
  CHECK(Lanes::words(0) == 0);
  for (std::uint64_t const near :
       {std::uint64_t{32}, std::uint64_t{1} << 32, std::uint64_t{1} << 40}) {
    for (std::uint64_t count = near - 20; count <= near + 20; ++count) {
      CAPTURE(count);
      std::uint64_t const words = Lanes::words(count);
      CHECK(words * Lanes::lanes >= count);
      CHECK((words - 1) * Lanes::lanes < count);
    }
  }
}

}  // namespace
