// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The words of the codes of a chunk that has a scale of its own: how many they are, and where a code lies in them.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! @brief Words of the numbers of a chunk's blocks, such as scales. The four blocks that begin at the same place of the chunk's quarters
//! share a word, or two.
template <class Quantizer>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr int scale_words(int chunk_size) noexcept
{
  if constexpr (block_quantizer<Quantizer>) {
    return chunk_size / (4 * Quantizer::block) * (Quantizer::block_bits / 8);
  }
  return 0;
}

//! @brief Words of a chunk's codes and of the scales of its groups, without the chunk's own scale.
template <class Quantizer>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t code_words(int chunk_size) noexcept
{
  return static_cast<std::uint32_t>(chunk_size / 32 * Quantizer::bits +
                                    scale_words<Quantizer>(chunk_size));
}

//! @brief The code at position p of a chunk, in the low bits; the bits above are those of other codes.
template <int Bits>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t read_code(std::uint32_t const* words,
                                                                   int p) noexcept
{
  int const first    = p * Bits / 32;
  int const shift    = p * Bits % 32;
  std::uint64_t both = words[first];
  if (shift + Bits > 32) { both |= static_cast<std::uint64_t>(words[first + 1]) << 32; }
  return static_cast<std::uint32_t>(both >> shift);
}

//! @brief Writes a code over zeros.
template <int Bits>
TERSUM_HOST_DEVICE constexpr void write_code(std::uint32_t* words,
                                             int p,
                                             std::uint32_t code) noexcept
{
  int const first = p * Bits / 32;
  int const shift = p * Bits % 32;
  words[first] |= code << shift;
  if (shift + Bits > 32) { words[first + 1] |= code >> (32 - shift); }
}

}  // namespace tersum::inline v0::detail
