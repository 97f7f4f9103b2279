// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The random signs of a rotation: 32 to a word, the same on every rank, new in every step.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

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
