// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals in codes of 8 bits, of which 32 have a step.

#pragma once

#include <tersum/config.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief What `kept_in` is given for residuals in signed codes of 8 bits with a step in float for each block of 32: `byte_chunk`.
struct byte_blocks {};

//! @brief What the state keeps of one chunk under `kept_in<byte_blocks>`: 36 bytes for 32 coordinates, a multiple of 16 for the chunk.
//!
//! A block is what a thread of a kernel holds: coordinates 8 t to 8 t + 7 of each quarter of the chunk, for block t. What is kept of a
//! coordinate is its code times the step of its block, which is the largest magnitude of the block divided by 127.
//! @tparam Size  Coordinates of a chunk: a multiple of 32.
template <int Size>
struct alignas(16) byte_chunk {
  static_assert(Size % 32 == 0, "tersum: byte_blocks are for chunks of a multiple of 32");

  static constexpr int size    = Size;
  static constexpr int quarter = Size / 4;

  static constexpr auto words  = static_cast<std::size_t>(Size / 4);
  static constexpr auto blocks = static_cast<std::size_t>(Size / 32);

  //! Eight words a block, two for each quarter; the first code in the lowest byte.
  std::uint32_t codes[words];
  //! One a block. NaN or infinity: a value of the block was not finite.
  float steps[blocks];

  //! The block of a coordinate.
  [[nodiscard]] TERSUM_INLINE static constexpr int block_of(int coordinate) noexcept
  {
    return coordinate % quarter / 8;
  }
  //! The word of a coordinate's code, whose byte is that of the coordinate modulo 4.
  [[nodiscard]] TERSUM_INLINE static constexpr int word_of(int coordinate) noexcept
  {
    return block_of(coordinate) * 8 + coordinate / quarter * 2 + coordinate % 8 / 4;
  }
  //! The code of a coordinate of the chunk, -127 to 127.
  [[nodiscard]] TERSUM_INLINE constexpr int code(int coordinate) const noexcept
  {
    std::uint32_t const word = codes[word_of(coordinate)] >> (coordinate % 4 * 8);
    return static_cast<std::int8_t>(word & 255u);
  }
  //! What is kept of a coordinate of the chunk.
  [[nodiscard]] TERSUM_INLINE constexpr float value(int coordinate) const noexcept
  {
    return static_cast<float>(code(coordinate)) * steps[block_of(coordinate)];
  }
};

}  // namespace tersum::inline v0
