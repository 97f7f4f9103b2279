// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How all collectives of the library cut an array into one block for each rank.

#pragma once

#include <cstddef>

namespace tersum::inline v0 {

//! @brief Cuts an array into one block for each rank: block k begins at element k count / ranks, rounded down. The sizes
//! of the blocks differ by one element at most. With `place` they are anything, in ascending order.
struct rank_blocks {
  //! Where a block lies: its first element, and how many it has.
  struct extent {
    std::size_t begin;
    std::size_t size;
  };

  std::size_t count;          //!< Elements of the array.
  std::size_t element_bytes;  //!< Bytes of one element; blocks are whole elements.
  int ranks;                  //!< Blocks, at least 1.
  extent (*place)(void const* of,
                  int block) = nullptr;  //!< place(of, k): where block k lies, if not as above.
  void const* of             = nullptr;

  //! The first element of a block. Without `place` begin(ranks) is `count`.
  [[nodiscard]] constexpr std::size_t begin(int block) const noexcept
  {
    if (place != nullptr) { return place(of, block).begin; }
    auto const k = static_cast<std::size_t>(block);
    auto const n = static_cast<std::size_t>(ranks);
    return count / n * k + count % n * k / n;
  }

  //! Elements of a block.
  [[nodiscard]] constexpr std::size_t size(int block) const noexcept
  {
    if (place != nullptr) { return place(of, block).size; }
    return begin(block + 1) - begin(block);
  }

  //! @name In bytes
  //! @{
  [[nodiscard]] constexpr std::size_t begin_byte(int block) const noexcept
  {
    return begin(block) * element_bytes;
  }
  [[nodiscard]] constexpr std::size_t bytes(int block) const noexcept
  {
    return size(block) * element_bytes;
  }
  //! @}
};

}  // namespace tersum::inline v0
