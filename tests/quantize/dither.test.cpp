// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The bytes that round: their counters, their place in a draw, and how those of several ranks relate.

#include "support/mismatches.hpp"
#include "support/reference_philox.hpp"

#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace {

using tersum::dither_byte;
using tersum::dither_key;
using tersum::independent;
using tersum::philox_block;
using tersum::stratified;
using tersum::tests::mismatches;
using tersum::tests::reference_philox;

using counter = std::array<std::uint32_t, 4>;

counter words_of(philox_block const& block)
{
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

// Where fields of 16 and 32 bits meet, up to the documented ends: block and step below 2^48, rank below 65535.
constexpr std::uint64_t corners[] = {0,
                                     1,
                                     0xffffu,
                                     0x10000u,
                                     0x7fffffffu,
                                     0xffffffffu,
                                     0x100000000u,
                                     0x100000001u,
                                     0x1ffffffffu,
                                     0x7fffffffffffu,
                                     0xfffeffffffffu,
                                     0xffffffffffffu};
constexpr std::uint32_t ranks[]   = {0, 1, 2, 255, 256, 257, 32767, 32768, 65533, 65534};

TEST_CASE("[dither] no two draws share a counter, and none is a counter of sign_key")
{
  std::set<counter> seen;
  std::size_t drawn = 0;
  for (std::uint64_t const step : corners) {
    // What `sign_key` draws with; its own test holds it to that.
    seen.insert(
      {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), ~0u, ~0u});
    ++drawn;
    for (std::uint64_t const block : corners) {
      seen.insert(words_of(stratified::counter(block, {.step = step})));
      ++drawn;
      for (std::uint32_t const rank : ranks) {
        seen.insert(words_of(independent::counter(block, {.step = step, .rank = rank})));
        ++drawn;
      }
    }
  }
  CHECK(seen.size() == drawn);
}

TEST_CASE("[dither] the ranks of a stratified draw share its counter")
{
  mismatches wrong;
  for (std::uint64_t const block : corners) {
    for (std::uint32_t const rank : ranks) {
      bool const same = stratified::counter(block, {.step = 9, .rank = rank}) ==
                        stratified::counter(block, {.step = 9, .rank = 0});
      wrong.expect(same, true, block, rank);
    }
  }
  CHECK(wrong.report() == "");
}

// Byte p mod 16, little-endian, of the draw p div 16, as the comments of the two sources define it.
std::uint32_t expected_byte(counter const& of_draw,
                            std::uint64_t position,
                            std::uint64_t seed,
                            std::uint32_t rounds)
{
  auto const draw = reference_philox(
    of_draw, {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, rounds);
  std::array<std::uint32_t, 16> bytes{};
  for (std::size_t word = 0; word < 4; ++word) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      bytes[4 * word + byte] = draw[word] >> (8 * byte) & 255u;
    }
  }
  return bytes[position % 16];
}

template <int Rounds>
void compare_bytes(mismatches& wrong)
{
  std::mt19937_64 random(5);
  for (int i = 0; i < 4000; ++i) {
    std::uint64_t const position = i < 100 ? static_cast<std::uint64_t>(i) : random() >> 12;
    dither_key const key{.seed = random(),
                         .step = random() >> 16,
                         .rank = static_cast<std::uint32_t>(random() % 65535)};
    std::uint64_t const block = position / 16;
    auto const low            = static_cast<std::uint32_t>(block);
    auto const high           = static_cast<std::uint32_t>(block >> 32);
    auto const step_low       = static_cast<std::uint32_t>(key.step);
    auto const step_high      = static_cast<std::uint32_t>(key.step >> 32);

    std::uint32_t const own = expected_byte(
      {low, step_low, high + 0x10000u * (key.rank + 1), step_high}, position, key.seed, Rounds);
    wrong.expect(dither_byte<tersum::independent_dither<Rounds>>(position, key),
                 own,
                 position,
                 key.step,
                 key.rank);

    std::uint32_t reversed = 0;
    for (std::uint32_t bit = 0, rank = key.rank; bit < 8; ++bit, rank /= 2) {
      reversed = 2 * reversed + rank % 2;
    }
    std::uint32_t const shared =
      expected_byte({low, step_low, high, step_high}, position, key.seed, Rounds);
    wrong.expect(dither_byte<tersum::stratified_dither<Rounds>>(position, key),
                 shared ^ reversed,
                 position,
                 key.step,
                 key.rank);
  }
}

TEST_CASE("[dither] a byte is the one that its definition names")
{
  mismatches wrong;
  compare_bytes<7>(wrong);
  compare_bytes<10>(wrong);
  CHECK(wrong.report() == "");
}

TEST_CASE("[dither] stratified bytes of n ranks lie in n different strata of width 256 / n")
{
  mismatches wrong;
  for (std::uint32_t n = 2; n <= 256; n *= 2) {
    for (std::uint64_t position = 0; position < 2000; ++position) {
      std::set<std::uint32_t> strata;
      for (std::uint32_t rank = 0; rank < n; ++rank) {
        strata.insert(dither_byte<stratified>(position, {.seed = 42, .step = 1, .rank = rank}) * n /
                      256);
      }
      wrong.expect(strata.size(), std::size_t{n}, n, position);
    }
  }
  CHECK(wrong.report() == "");
}

constexpr std::uint64_t samples = std::uint64_t{1} << 18;

template <class Dither>
std::vector<std::uint32_t> bytes_of(dither_key const& key)
{
  std::vector<std::uint32_t> bytes(samples);
  for (std::uint64_t position = 0; position < samples; ++position) {
    bytes[position] = dither_byte<Dither>(position, key);
  }
  return bytes;
}

// Of n pairs of independent uniform bytes the mean of (a - m)(b - m) / v, m = 127.5, v = 65535 / 12, has mean 0 and variance 1
// / n, and is normal for n this large: beyond 5.5 / sqrt(n) with probability 3.8e-8.
double correlation(std::vector<std::uint32_t> const& a,
                   std::vector<std::uint32_t> const& b,
                   std::size_t lag)
{
  double sum = 0;
  for (std::size_t i = lag; i < a.size(); ++i) { sum += (a[i] - 127.5) * (b[i - lag] - 127.5); }
  return sum / (65535.0 / 12) / static_cast<double>(a.size() - lag);
}

double const band = 5.5 / std::sqrt(static_cast<double>(samples - 64));

TEST_CASE_TEMPLATE("[dither] bytes of one rank are uncorrelated over coordinates, steps and seeds",
                   Dither,
                   independent,
                   stratified)
{
  auto const bytes = bytes_of<Dither>({.seed = 42, .step = 1, .rank = 3});
  for (std::size_t lag = 1; lag <= 64; ++lag) {
    CAPTURE(lag);
    CHECK(std::fabs(correlation(bytes, bytes, lag)) <= band);
  }
  auto const next_step = bytes_of<Dither>({.seed = 42, .step = 2, .rank = 3});
  auto const next_seed = bytes_of<Dither>({.seed = 43, .step = 1, .rank = 3});
  CHECK(std::fabs(correlation(bytes, next_step, 0)) <= band);
  CHECK(std::fabs(correlation(bytes, next_seed, 0)) <= band);
}

}  // namespace
