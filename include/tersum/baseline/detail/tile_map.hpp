// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! In which element of a per-hop payload a chunk lies, and where. Part of the wire format.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Words of a chunk on a level of a reduction that requantizes, its scales included.
template <class Op, int Level>
inline constexpr std::uint32_t requantized_words =
  code_words<typename Op::template quantizer_at<Level>>(Op::chunk_size) + 1;

//! @brief The chunks of one element: how many on each level, the widest first.
template <class Op>
struct tile_counts {
  std::uint32_t count[Op::levels + 1];

  //! @brief All of them.
  [[nodiscard]] TERSUM_INLINE std::uint32_t chunks() const
  {
    std::uint32_t all = 0;
    TERSUM_UNROLL
    for (int level = 1; level <= Op::levels; ++level) { all += count[level]; }
    return all;
  }

  //! @brief What they take, scales included. Counts below 2^16 do not overflow it.
  template <int Level = Op::levels>
  [[nodiscard]] TERSUM_INLINE std::uint32_t words() const
  {
    std::uint32_t const own = count[Level] * requantized_words<Op, Level>;
    if constexpr (Level > 1) {
      return own + words<Level - 1>();
    } else {
      return own;
    }
  }

  //! @brief The place of chunk number `index`. Behind the last chunk it is of level 0, at the end of the codes.
  template <int Level = Op::levels>
  [[nodiscard]] TERSUM_INLINE part_place place(std::uint32_t index,
                                               std::uint32_t before = 0,
                                               std::uint32_t word   = 0) const
  {
    constexpr std::uint32_t words = requantized_words<Op, Level> - 1;
    if (index - before < count[Level]) {
      return {Level, 0, index, word + (index - before) * words};
    }
    word += count[Level] * words;
    before += count[Level];
    if constexpr (Level > 1) {
      return place<Level - 1>(index, before, word);
    } else {
      return {0, 0, index, word};
    }
  }
};

//! @brief The chunks that travel, the widest first and each width in order, fill one element after the other. A chunk for
//! which an element has no room begins the next one.
template <class Op>
struct tile_map {
  using element                       = typename Op::element;
  static constexpr std::uint32_t room = element::words - element::head;

  std::uint32_t tiles;
  std::uint32_t count[Op::levels + 1];  //!< Chunks on each level from 1 on.

  [[nodiscard]] TERSUM_INLINE std::uint32_t parts() const { return tiles; }

  //! @brief The first word of an element's codes in the payload.
  [[nodiscard]] TERSUM_INLINE std::uint64_t begin(std::uint64_t tile) const
  {
    return tile * element::words + element::head;
  }

  //! @brief The place of number `slot` among the chunks of a level.
  [[nodiscard]] TERSUM_INLINE part_place of_slot(std::uint32_t level, std::uint32_t slot) const
  {
    return level == 0 ? part_place{} : find<Op::levels>(level, slot, {});
  }

  //! @brief The chunks of an element.
  [[nodiscard]] TERSUM_INLINE tile_counts<Op> counts_of(std::uint32_t tile) const
  {
    tile_counts<Op> out{};
    collect<Op::levels>(tile, {}, out);
    return out;
  }

  //! @brief Chunks of an element.
  [[nodiscard]] TERSUM_INLINE std::uint32_t chunks_of(std::uint32_t tile) const
  {
    return counts_of(tile).chunks();
  }

  //! @brief The words of an element that are neither codes nor scales.
  [[nodiscard]] TERSUM_INLINE part_rest rest_of(std::uint32_t tile) const
  {
    tile_counts<Op> const counts = counts_of(tile);
    std::uint32_t const chunks   = counts.chunks();
    return {counts.place(chunks).word, room - chunks};
  }

  //! @brief The word of an element, counted from its codes, in which the scale of its chunk number `index` lies.
  [[nodiscard]] TERSUM_INLINE static std::uint64_t scale_word(std::uint32_t index)
  {
    return room - 1 - index;
  }

 private:
  //! Where the next chunk goes if there is room. The chunks before it have `word` words of codes in this tile, and a scale
  //! each.
  struct spot {
    std::uint32_t tile, index, word;
  };

  template <int Level>
  [[nodiscard]] TERSUM_INLINE static std::uint32_t free_in(spot const& at)
  {
    return (room - at.word - at.index) / requantized_words<Op, Level>;
  }

  //! Where the chunks of a level end, if they begin at a spot.
  template <int Level>
  [[nodiscard]] TERSUM_INLINE spot behind(spot const& at) const
  {
    constexpr std::uint32_t words  = requantized_words<Op, Level>;
    constexpr std::uint32_t a_tile = room / words;
    std::uint32_t const here       = free_in<Level>(at);
    if (count[Level] <= here) {
      return {at.tile, at.index + count[Level], at.word + count[Level] * (words - 1)};
    }
    std::uint32_t const rest = count[Level] - here - 1;
    std::uint32_t const last = rest % a_tile + 1;
    return {at.tile + 1 + rest / a_tile, last, last * (words - 1)};
  }

  template <int Level>
  [[nodiscard]] TERSUM_INLINE part_place find(std::uint32_t level,
                                              std::uint32_t slot,
                                              spot const& at) const
  {
    constexpr std::uint32_t words  = requantized_words<Op, Level>;
    constexpr std::uint32_t a_tile = room / words;
    if (level == Level) {
      std::uint32_t const here = free_in<Level>(at);
      if (slot < here) { return {level, at.tile, at.index + slot, at.word + slot * (words - 1)}; }
      std::uint32_t const over  = slot - here;
      std::uint32_t const index = over % a_tile;
      return {level, at.tile + 1 + over / a_tile, index, index * (words - 1)};
    }
    if constexpr (Level > 1) {
      return find<Level - 1>(level, slot, behind<Level>(at));
    } else {
      return {};
    }
  }

  template <int Level>
  TERSUM_INLINE void collect(std::uint32_t tile, spot const& at, tile_counts<Op>& out) const
  {
    constexpr std::uint32_t a_tile = room / requantized_words<Op, Level>;
    std::uint32_t const here       = minimum(free_in<Level>(at), count[Level]);
    if (tile == at.tile) { out.count[Level] = here; }
    if (tile > at.tile) {
      std::uint64_t const before = (tile - at.tile - 1) * std::uint64_t{a_tile};
      std::uint32_t const rest   = count[Level] - here;
      out.count[Level] =
        before < rest ? minimum(rest - static_cast<std::uint32_t>(before), a_tile) : 0u;
    }
    if constexpr (Level > 1) { collect<Level - 1>(tile, behind<Level>(at), out); }
  }
};

}  // namespace tersum::inline v0::detail
