// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The words of the codes of a chunk that has a scale of its own: how many they are, where a code lies in them, and the scale of elements.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

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

//! @brief The scale of a chunk whose coordinates travel as `T`: 1 for floats, otherwise a power of two. 0 where 16 bits would
//! hold next to nothing, NaN where a coordinate is not finite.
//! @param largest  The largest magnitude, NaN above infinity.
template <gradient_element T>
[[nodiscard]] TERSUM_INLINE float scale_of_elements(float largest)
{
  if (!is_finite(largest)) { return bits_float(0x7fffffffu); }
  if (sizeof(T) == 4) { return 1.0f; }
  return largest < 0x1p-100f ? 0.0f : bits_float((float_bits(largest) & 0x7f800000u) - (14u << 23));
}

//! @brief One over a scale of these; 0 where nothing travels.
[[nodiscard]] TERSUM_INLINE float inverse_of_scale(float scale)
{
  return scale > 0.0f ? bits_float(0x7f000000u - float_bits(scale)) : 0.0f;
}

}  // namespace tersum::inline v0::detail
