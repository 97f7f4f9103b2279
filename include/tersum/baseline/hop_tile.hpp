// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Tiles: elements of one size that hold chunks of several widths, and say which.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief The first words of a tile, the same on every rank. With them a hop needs to know nothing but codes and scales.
struct tile_head {
  static constexpr int words = 8;

  std::uint32_t word[words];

  //! The key of the random numbers of this step.
  [[nodiscard]] TERSUM_INLINE std::uint64_t key() const noexcept
  {
    return word[0] | static_cast<std::uint64_t>(word[1]) << 32;
  }
  //! The tile's number in the payload.
  [[nodiscard]] TERSUM_INLINE std::uint32_t number() const noexcept { return word[2]; }
  //! The number of chunks on a level, which is 1 or above.
  [[nodiscard]] TERSUM_INLINE std::uint32_t count(int level) const noexcept
  {
    return word[4 + (level - 1) / 2] >> (level - 1) % 2 * 16 & 0xffffu;
  }

  //! @param counts  Chunks on each level, from counts[1] on, below 2^16.
  template <int Levels>
  [[nodiscard]] TERSUM_INLINE static tile_head make(
    std::uint64_t key,
    std::uint32_t number,
    std::uint32_t const (&counts)[detail::extent(Levels + 1)]) noexcept
  {
    tile_head head{
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), number}};
    TERSUM_UNROLL
    for (int level = 1; level <= Levels; ++level) {
      head.word[4 + (level - 1) / 2] |= counts[level] << (level - 1) % 2 * 16;
    }
    return head;
  }
};

namespace detail {

//! @brief The words of a tile, and how many of them chunks of one width may leave free; the head is not counted.
struct tile_size {
  std::uint32_t words, lost;
};

//! @brief The size of a tile, from 16 to 32 of the widest chunks, that leaves the smallest fraction free; it is 16 chunks
//! if all have the same width.
//! @param chunk_words  Of a chunk of each width, its scales included, ascending.
template <std::size_t Levels>
[[nodiscard]] constexpr tile_size fit_tile(std::uint32_t const (&chunk_words)[Levels]) noexcept
{
  constexpr std::uint32_t head = tile_head::words;
  std::uint32_t const widest   = chunk_words[Levels - 1];
  tile_size best{16 * widest + head, widest};
  for (std::uint32_t room = 16 * widest; room <= (Levels == 1 ? 16 : 32) * widest; room += 4) {
    std::uint32_t lost = 0;
    for (std::uint32_t const words : chunk_words) { lost = maximum(lost, room % words); }
    // (head + lost) / (head + room)
    if (std::uint64_t{head + lost} * best.words < std::uint64_t{head + best.lost} * (head + room)) {
      best = {head + room, lost};
    }
  }
  return best;
}

}  // namespace detail

//! @brief A head, then the codes of chunks, the widest first. The scales fill the tile from its end: that of the first chunk
//! is the last word.
//! @tparam Words   Words of the whole tile, a multiple of 4.
//! @tparam Chunks  The most chunks that fit.
template <int Words, int Chunks>
struct hop_tile {
  static constexpr int words  = Words;
  static constexpr int chunks = Chunks;
  static constexpr int head   = tile_head::words;
  static constexpr int room   = Words - head;

  tile_head about;
  std::uint32_t word[detail::extent(room)];

  //! The word in which a chunk's scale lies.
  [[nodiscard]] static constexpr int scale_of(int chunk) noexcept { return room - 1 - chunk; }
};

}  // namespace tersum::inline v0
