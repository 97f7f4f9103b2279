// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the dither role, for every source of randomness of the library and of its users.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

namespace tersum::tests {

//! @brief Checks every law of the role.
//!
//! - No two blocks of 16 positions, and no two steps, draw from one counter.
//! - Ranks draw different bytes.
//! - The bytes of every rank are uniform.
template <dither_source Dither>
void check_dither_laws()
{
  static_assert(Dither::rounds >= 0 && Dither::rounds <= 16);
  if constexpr (Dither::rounds > 0) {
    auto const draw = [](std::uint64_t block, dither_key const& key) {
      philox_block out = philox4x32<Dither::rounds>(Dither::counter(block, key), key.seed);
      for (std::uint32_t& word : out.word) { word ^= Dither::mask(key); }
      return std::array{out.word[0], out.word[1], out.word[2], out.word[3]};
    };
    std::set<std::array<std::uint32_t, 4>> counters;
    int drawn = 0;
    for (std::uint64_t const step : {0ull, 1ull, 2ull, 1ull << 32, (1ull << 32) + 1}) {
      for (std::uint64_t block = 0; block < 1000; ++block) {
        auto const c = Dither::counter(block % 2 == 0 ? block : block << 25, {.step = step});
        counters.insert({c.word[0], c.word[1], c.word[2], c.word[3]});
        ++drawn;
      }
    }
    CHECK(static_cast<int>(counters.size()) == drawn);

    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      CAPTURE(rank);
      dither_key const key{.seed = 3, .step = 7, .rank = rank};
      std::array<int, 256> seen{};
      constexpr int blocks = 16384;
      int alike            = 0;
      for (std::uint64_t block = 0; block < blocks; ++block) {
        auto const words = draw(block, key);
        alike += words == draw(block, {.seed = 3, .step = 7, .rank = rank + 1}) ? 1 : 0;
        for (std::uint32_t const word : words) {
          for (int shift = 0; shift < 32; shift += 8) { ++seen[word >> shift & 0xff]; }
        }
      }
      CHECK(alike == 0);
      // 1024 of each byte are expected: chi-square has 255 degrees of freedom, and more than 255 + 6 sqrt(510) once in 10^7.
      double chi = 0;
      for (int const count : seen) { chi += (count - 1024.0) * (count - 1024.0) / 1024; }
      CHECK(chi < 255 + 6 * std::sqrt(510.0));
    }
  }
}

}  // namespace tersum::tests
