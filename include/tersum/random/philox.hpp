// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Philox4x32: random numbers as a pure function of a counter and a key.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief What the dither of one rank in one step is made from. The ranks agree on everything but `rank`.
struct dither_key {
  std::uint64_t seed = 0;  //!< The run's seed, the same on every rank.
  std::uint64_t step = 0;  //!< Exchanges made with this state.
  std::uint32_t rank = 0;  //!< This rank.
};

//! Four 32-bit words: a Philox counter or a Philox result.
struct philox_block {
  std::uint32_t word[4];
  friend constexpr bool operator==(philox_block const&, philox_block const&) noexcept = default;
};

//! @brief The constants of Philox4x32. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC'11).
struct philox_constants {
  static constexpr std::uint32_t multiplier_0 = 0xd2511f53u;
  static constexpr std::uint32_t multiplier_1 = 0xcd9e8d57u;
  static constexpr std::uint32_t weyl_0       = 0x9e3779b9u;
  static constexpr std::uint32_t weyl_1       = 0xbb67ae85u;
};

//! @brief The product of two words in two words, in plain C++.
struct wide_product {
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint64_t of(std::uint32_t a,
                                                                     std::uint32_t b) noexcept
  {
    return static_cast<std::uint64_t>(a) * b;
  }
};

//! @brief 128 random bits, a pure function of counter and key: stateless, the same on CPU and GPU.
//! @tparam Rounds  10 is the generator's standard number; 7 is the least that its authors found to pass BigCrush.
template <int Rounds, class Product = wide_product>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr philox_block philox4x32(philox_block counter,
                                                                   std::uint64_t key) noexcept
{
  static_assert(Rounds >= 1 && Rounds <= 16, "tersum: philox4x32<Rounds> needs 1 <= Rounds <= 16");
  using constants  = philox_constants;
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2],
                c3 = counter.word[3];
  TERSUM_UNROLL
  for (int round = 0; round < Rounds; ++round) {
    std::uint64_t const p0 = Product::of(constants::multiplier_0, c0);
    std::uint64_t const p1 = Product::of(constants::multiplier_1, c2);
    c0                     = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1                     = static_cast<std::uint32_t>(p1);
    c2                     = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3                     = static_cast<std::uint32_t>(p0);
    k0 += constants::weyl_0;
    k1 += constants::weyl_1;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace tersum::inline v0
