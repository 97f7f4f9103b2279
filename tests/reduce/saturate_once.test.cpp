// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum of many words with one saturation against a scalar loop.

#include "support/mismatches.hpp"

#include <tersum/quantize/packed_codes.hpp>
#include <tersum/reduce/saturate_once.hpp>
#include <tersum/reduce/saturating_sum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using tersum::packed_codes;
using tersum::saturate_once;
using tersum::tests::mismatches;

template <int Bits>
std::uint32_t total(std::vector<std::uint32_t> const& words)
{
  saturate_once<Bits> sum;
  for (std::uint32_t const word : words) { sum.add(word); }
  return sum.result(static_cast<int>(words.size()));
}

template <int Bits>
std::uint32_t reference(std::vector<std::uint32_t> const& words)
{
  std::int64_t const span = std::int64_t{1} << Bits, limit = span / 2 - 1;
  std::uint32_t result = 0;
  for (int first = 0; first < 32; first += Bits) {
    std::int64_t sum = 0;
    for (std::uint32_t const word : words) {
      std::int64_t const digit = (std::int64_t{word} >> first) % span;
      sum += digit < span / 2 ? digit : digit - span;
    }
    std::int64_t const digits = (std::clamp(sum, -limit, limit) + span) % span;
    result |= static_cast<std::uint32_t>(digits) << first;
  }
  return result;
}

// Words whose lanes are the lowest code, a limit, or small, so that sums reach every part of their
// range.
template <int Bits>
std::uint32_t mixed_word(std::mt19937& random, std::uint32_t style)
{
  using lanes        = packed_codes<Bits>;
  std::uint32_t word = 0;
  for (int lane = 0; lane < lanes::lanes; ++lane) {
    auto const draw   = static_cast<std::int32_t>(random() & 0xffffu);
    std::int32_t code = 0;
    switch (style) {
      case 0: code = draw % 3 - 1; break;
      case 1: code = lane % 2 ? lanes::limit : -lanes::limit - 1; break;
      case 2: code = lane % 2 ? -lanes::limit - 1 : lanes::limit; break;
      case 3: code = draw % 8 ? lanes::limit : -lanes::limit; break;
      case 4: code = draw % 8 ? -lanes::limit - 1 : 0; break;
      default: code = draw; break;
    }
    word |= lanes::put(code, lane);
  }
  return word;
}

TEST_CASE_TEMPLATE("[saturate_once] up to max_words words give the clamp of their exact sum",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>,
                   packed_codes<8>)
{
  constexpr int bits = Lanes::bits;
  mismatches wrong;
  std::mt19937 random(73);
  for (int n = 1; n <= saturate_once<bits>::max_words; ++n) {
    for (std::uint32_t style = 0; style < 18; ++style) {
      std::vector<std::uint32_t> words;
      // The styles alone, then mixed.
      for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(n); ++i) {
        words.push_back(mixed_word<bits>(random, style < 6 ? style : i % 6));
      }
      wrong.expect(total<bits>(words), reference<bits>(words), n, style);
    }
    for (std::uint32_t const word : {0u, ~0u, Lanes::signs, ~Lanes::signs, Lanes::ones}) {
      std::vector<std::uint32_t> const words(static_cast<std::size_t>(n), word);
      wrong.expect(total<bits>(words), reference<bits>(words), n, word);
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[saturate_once] the sum of no words is a word of zeros")
{
  static_assert(saturate_once<2>{}.result(0) == 0 && saturate_once<4>{}.result(0) == 0 &&
                saturate_once<8>{}.result(0) == 0);
  CHECK(total<2>({}) == 0);
  CHECK(total<4>({}) == 0);
  CHECK(total<8>({}) == 0);
}

TEST_CASE_TEMPLATE("[saturate_once] every multiset of codes of few words, in every lane",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>)
{
  // All triples, the same in every lane but for a rotation of their order.
  mismatches wrong;
  std::int32_t const low = -Lanes::limit - 1;
  for (std::int32_t a = low; a <= Lanes::limit; ++a) {
    for (std::int32_t b = low; b <= Lanes::limit; ++b) {
      for (std::int32_t c = low; c <= Lanes::limit; ++c) {
        std::int32_t const codes[] = {a, b, c};
        std::vector<std::uint32_t> words(3);
        for (int lane = 0; lane < Lanes::lanes; ++lane) {
          for (std::size_t i = 0; i < 3; ++i) {
            words[i] |= Lanes::put(codes[(i + static_cast<std::size_t>(lane)) % 3], lane);
          }
        }
        wrong.expect(total<Lanes::bits>(words), reference<Lanes::bits>(words), a, b, c);
      }
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE_TEMPLATE("[saturate_once] the order of the words is without effect",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>,
                   packed_codes<8>)
{
  constexpr int bits = Lanes::bits;
  std::mt19937 random(79);
  mismatches wrong;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::uint32_t> words;
    for (int i = 0; i < saturate_once<bits>::max_words; ++i) {
      words.push_back(static_cast<std::uint32_t>(random()));
    }
    std::uint32_t const before = total<bits>(words);
    std::shuffle(words.begin(), words.end(), random);
    wrong.expect(total<bits>(words), before, trial);
  }
  CHECK(wrong.report() == "");
}

TEST_CASE_TEMPLATE("[saturate_once] two words give what saturating_add gives",
                   Lanes,
                   packed_codes<2>,
                   packed_codes<4>,
                   packed_codes<8>)
{
  constexpr int bits = Lanes::bits;
  std::mt19937 random(83);
  mismatches wrong;
  for (int i = 0; i < 200000; ++i) {
    auto const a = static_cast<std::uint32_t>(random()), b = static_cast<std::uint32_t>(random());
    wrong.expect(total<bits>({a, b}), tersum::saturating_add<bits>{}(a, b), a, b);
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[saturate_once] max_words is the most that its fields hold")
{
  // A field of 8 bits (16 for codes of 8) holds a sum of codes of 0 .. 2^Bits - 1.
  static_assert(saturate_once<2>::max_words * 3 <= 255 &&
                (saturate_once<2>::max_words + 1) * 3 > 255);
  static_assert(saturate_once<4>::max_words * 15 <= 255 &&
                (saturate_once<4>::max_words + 1) * 15 > 255);
  static_assert(saturate_once<8>::max_words * 255 <= 65535 &&
                (saturate_once<8>::max_words + 1) * 255 > 65535);

  // One word more, all at the upper limit, leaves the field.
  auto const overflows = []<int Bits>(packed_codes<Bits>) {
    std::vector<std::uint32_t> const words(saturate_once<Bits>::max_words + 1,
                                           ~packed_codes<Bits>::signs);
    return total<Bits>(words) != reference<Bits>(words);
  };
  CHECK(overflows(packed_codes<2>{}));
  CHECK(overflows(packed_codes<4>{}));
  CHECK(overflows(packed_codes<8>{}));
}

}  // namespace
