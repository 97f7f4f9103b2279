// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Philox4x32: random numbers as a pure function of a counter and a key; and the random signs of rotations, 32 to a word.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/value.hpp>

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

//! @brief The finalizer of MurmurHash3 (Appleby), a bijection of 32-bit words, of each word of a value.
TERSUM_OF_VALUES
template <class Words>
[[nodiscard]] TERSUM_INLINE constexpr Words mix32(Words const& word) noexcept
{
  auto const a = (word ^ (word >> 16)) * 0x85ebca6bu;
  auto const b = (a ^ (a >> 13)) * 0xc2b2ae35u;
  return b ^ (b >> 16);
}

//! @brief Thirty-two signs, one per bit (1 negates), as a pure function of the step's key and the word's number.
//!
//! `index` numbers the words of a whole gradient: word i of chunk c of C coordinates has index c C/32 + i;
//! `chunk_order` says which coordinates it covers. Signs need to be new in each step and fair, but not of Philox
//! quality: two rounds of a 32-bit mixer cost a third of an operation per coordinate.
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t sign_bits(std::uint64_t index,
                                                                   std::uint64_t key) noexcept
{
  std::uint32_t const high =
    mix32(static_cast<std::uint32_t>(index >> 32) ^ static_cast<std::uint32_t>(key >> 32));
  return mix32(mix32(static_cast<std::uint32_t>(index) ^ static_cast<std::uint32_t>(key)) + high);
}

//! @brief The key of a step's signs: Philox of (step, seed), so that neighbouring steps share nothing.
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t sign_key(std::uint64_t step,
                                                                  std::uint64_t seed) noexcept
{
  // The third counter word is out of the reach of any dither block.
  philox_block const block = philox4x32<10>({{static_cast<std::uint32_t>(step),
                                              static_cast<std::uint32_t>(step >> 32),
                                              0xffffffffu,
                                              0xffffffffu}},
                                            seed);
  return block.word[0] | static_cast<std::uint64_t>(block.word[1]) << 32;
}

//! @brief What the random part of a chunk's rotation is made from: the same on every rank, new in every step.
struct rotation_key {
  std::uint64_t step  = 0;  //!< `sign_key(step, seed)`.
  std::uint64_t chunk = 0;  //!< The chunk's number on the wire.

  //! @brief Thirty-two random bits, of which a chunk of `Size` has Size/32 different ones.
  //! @param i  From 0 to Size/32 - 1.
  template <int Size>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t word(int i) const noexcept
  {
    return sign_bits(chunk * (Size / 32) + static_cast<unsigned>(i), step);
  }
};

}  // namespace tersum::inline v0
