// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where a coordinate of a chunk lies on the wire, and which sign bit it takes. Part of the wire format.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief The order of the coordinates of a chunk of `Size`.
//!
//! Within each block of B = min(Size, 256) coordinates the payload is the transpose of a (B/8) x 8 matrix: the
//! coordinate i of the block has position (i mod 8) B/8 + i div 8. In a block of 256, for instance, coordinate 9 has
//! position 33. So a GPU thread that loads eight neighbours at a time, and exchanges once through shared memory, has 32
//! consecutive positions in the end, and each lane of a CPU vector has whole words.
//!
//! @tparam Size  Coordinates in a chunk, a power of two from 32 to 32768.
template <int Size>
struct chunk_order {
  static_assert(Size >= 32 && Size <= 32768 && (Size & (Size - 1)) == 0,
                "tersum: a chunk has a power of two of coordinates, from 32 to 32768");

  static constexpr int block = Size < 256 ? Size : 256;  //!< Coordinates in a transposed block.
  static constexpr int rows  = block / 8;                //!< Rows of eight coordinates in it.

  //! The position on the wire of coordinate i of the chunk, both in 0 .. Size-1.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr Integer position(Integer i) noexcept
  {
    return i / block * block + i % 8 * rows + i % block / 8;
  }

  //! The coordinate at a position of the wire.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr Integer coordinate(Integer position) noexcept
  {
    return position / block * block + position % rows * 8 + position % block / rows;
  }

  //! The number, within the chunk, of the word of `sign_bits` that covers coordinate i.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr Integer sign_word(Integer i) noexcept
  {
    return i % (Size / 4) / 8;
  }

  //! The bit of that word: the place among its eight neighbours, and the quarter of the chunk.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr Integer sign_bit(Integer i) noexcept
  {
    return i % 8 + i / (Size / 4) * 8;
  }
};

}  // namespace tersum::inline v0
