// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Philox4x32 against its published vectors and a second implementation; the signs against what fair coins do.

#include "support/mismatches.hpp"
#include "support/reference_philox.hpp"

#include <tersum/random/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>

namespace {

using tersum::philox4x32;
using tersum::philox_block;
using tersum::sign_bits;
using tersum::sign_key;
using tersum::tests::mismatches;
using tersum::tests::reference_philox;

philox_block reference(philox_block counter, std::uint64_t key, std::uint32_t rounds)
{
  auto const x =
    reference_philox({counter.word[0], counter.word[1], counter.word[2], counter.word[3]},
                     {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)},
                     rounds);
  return {{x[0], x[1], x[2], x[3]}};
}

constexpr philox_block zeros{{0, 0, 0, 0}};
constexpr philox_block ones{{~0u, ~0u, ~0u, ~0u}};
constexpr philox_block pi{{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}};
constexpr std::uint64_t pi_key = 0x299f31d0a4093822u;

// The known-answer vectors that Random123 is distributed with.
static_assert(philox4x32<7>(zeros, 0) ==
              philox_block{{0x5f6fb709u, 0x0d893f64u, 0x4f121f81u, 0x4f730a48u}});
static_assert(philox4x32<7>(ones, ~0ull) ==
              philox_block{{0x5207ddc2u, 0x45165e59u, 0x4d8ee751u, 0x8c52f662u}});
static_assert(philox4x32<7>(pi, pi_key) ==
              philox_block{{0x4dfccabau, 0x190a87f0u, 0xc47362bau, 0xb6b5242au}});
static_assert(philox4x32<10>(zeros, 0) ==
              philox_block{{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
static_assert(philox4x32<10>(ones, ~0ull) ==
              philox_block{{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
static_assert(philox4x32<10>(pi, pi_key) ==
              philox_block{{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}});

template <int Rounds>
void compare_rounds(mismatches& wrong)
{
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::uint64_t const low = random(), high = random(), key = random();
    philox_block const counter{{static_cast<std::uint32_t>(low),
                                static_cast<std::uint32_t>(low >> 32),
                                static_cast<std::uint32_t>(high),
                                static_cast<std::uint32_t>(high >> 32)}};
    philox_block const got  = philox4x32<Rounds>(counter, key),
                       want = reference(counter, key, Rounds);
    for (int word = 0; word < 4; ++word) {
      wrong.expect(got.word[word], want.word[word], low, high, key);
    }
  }
}

TEST_CASE("[philox] every number of rounds equals the second implementation")
{
  mismatches wrong;
  [&]<int... Rounds>(std::integer_sequence<int, Rounds...>)
  {
    (compare_rounds<Rounds + 1>(wrong), ...);
  }
  (std::make_integer_sequence<int, 16>{});
  CHECK(wrong.report() == "");
}

TEST_CASE("[philox] the second implementation gives the published vectors")
{
  CHECK(reference(pi, pi_key, 7) == philox4x32<7>(pi, pi_key));
  CHECK(reference(pi, pi_key, 10) == philox4x32<10>(pi, pi_key));
}

TEST_CASE("[signs] mix32 is the finalizer of MurmurHash3")
{
  // MurmurHash3_x86_32 of no bytes is the finalizer of the seed; these two are its published vectors.
  static_assert(tersum::mix32(0x00000001u) == 0x514e28b7u);
  static_assert(tersum::mix32(0xffffffffu) == 0x81f16f39u);
  static_assert(tersum::mix32(0u) == 0);
}

TEST_CASE("[signs] the key of a step is Philox of step and seed")
{
  mismatches wrong;
  std::mt19937_64 random(11);
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t const step = i % 2 ? random() : static_cast<std::uint64_t>(i), seed = random();
    philox_block const draw = reference(
      {{static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), ~0u, ~0u}},
      seed,
      10);
    wrong.expect(
      sign_key(step, seed), (std::uint64_t{draw.word[1]} << 32) + draw.word[0], step, seed);
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[signs] steps and seeds have keys of their own")
{
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    for (std::uint64_t step = 0; step < 64; ++step) { keys.insert(sign_key(step, seed)); }
    for (std::uint64_t step = 1; step < 64; ++step) { keys.insert(sign_key(step << 32, seed)); }
  }
  CHECK(keys.size() == 64 * (64 + 63));
}

// Every statistic below is the mean of n bits, which are fair and independent if the signs are what they should be. Then |mean
// - 1/2| > t has probability at most 2 exp(-2 n t^2) (Hoeffding). The band t = 2.75 / sqrt(n), 5.5 standard deviations, makes
// that 5.4e-7, and 0.0010 for any of the 1792 statistics of this file under a random choice of seeds.
class coin_counts {
 public:
  void add(std::uint32_t word)
  {
    for (int bit = 0; bit < 32; ++bit) {
      heads_[static_cast<std::size_t>(bit)] += (word >> bit) & 1u;
    }
    ++words_;
  }

  [[nodiscard]] double worst_deviation() const
  {
    double worst = 0;
    for (std::uint64_t const heads : heads_) {
      worst =
        std::max(worst, std::fabs(static_cast<double>(heads) / static_cast<double>(words_) - 0.5));
    }
    return worst;
  }

  [[nodiscard]] double band() const { return 2.75 / std::sqrt(static_cast<double>(words_)); }

 private:
  std::array<std::uint64_t, 32> heads_{};
  std::uint64_t words_ = 0;
};

constexpr std::uint64_t words = std::uint64_t{1} << 18;

TEST_CASE("[signs] every bit is fair, wherever in a gradient its word lies")
{
  for (std::uint64_t const first : {std::uint64_t{0},
                                    std::uint64_t{1} << 31,
                                    (std::uint64_t{1} << 32) - words / 2,
                                    std::uint64_t{1} << 40}) {
    for (std::uint64_t step = 0; step < 4; ++step) {
      CAPTURE(first);
      CAPTURE(step);
      coin_counts signs;
      std::uint64_t const key = sign_key(step, 42);
      for (std::uint64_t i = 0; i < words; ++i) { signs.add(sign_bits(first + i, key)); }
      CHECK(signs.worst_deviation() <= signs.band());
    }
  }
}

TEST_CASE("[signs] words of one step agree no more often than coins")
{
  // Neighbours, the words of a chunk, the same word of neighbouring chunks, and beyond 32 bits of index.
  std::uint64_t const key = sign_key(3, 42);
  for (int shift = 0; shift < 40; ++shift) {
    CAPTURE(shift);
    coin_counts agreements;
    for (std::uint64_t i = 0; i < words; ++i) {
      agreements.add(sign_bits(i, key) ^ sign_bits(i + (std::uint64_t{1} << shift), key));
    }
    CHECK(agreements.worst_deviation() <= agreements.band());
  }
}

TEST_CASE("[signs] words are bijections of the lower half of their index, so none of 2^32 repeats")
{
  // The inverse: the mixer's multipliers are odd, and x ^ x >> k is undone by adding x >> k, x >> 2k ...
  auto const inverse = [](std::uint32_t odd) {
    std::uint32_t x = odd;  // right in three bits; each step doubles them
    for (int i = 0; i < 4; ++i) { x *= 2 - odd * x; }
    return x;
  };
  auto const unmix = [&](std::uint32_t h) {
    h ^= h >> 16;
    h *= inverse(0xc2b2ae35u);
    h ^= (h >> 13) ^ (h >> 26);
    h *= inverse(0x85ebca6bu);
    h ^= h >> 16;
    return h;
  };
  std::uint64_t const key  = sign_key(1, 42);
  std::uint32_t const high = tersum::mix32(static_cast<std::uint32_t>(key >> 32));
  mismatches wrong;
  for (std::uint64_t i = 0; i <= 0xffffffffu; i += 65521) {
    std::uint32_t const index =
      unmix(unmix(sign_bits(i, key)) - high) ^ static_cast<std::uint32_t>(key);
    wrong.expect(index, static_cast<std::uint32_t>(i), i);
  }
  CHECK(wrong.report() == "");
}

}  // namespace
