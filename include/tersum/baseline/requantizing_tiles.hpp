// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum of two tiles, encoded again: what every hop does where chunks have several widths or blocks with scales.

#pragma once

#include <tersum/baseline/detail/hop_chunk.hpp>
#include <tersum/baseline/detail/tile_map.hpp>
#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/hop_tile.hpp>
#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! @brief The quantizer of a level: that of its width, or the only one.
template <class Quantizer, int Level, int... Widths>
struct quantizer_of_level {
  static constexpr int widths[sizeof...(Widths)] = {Widths...};
  using type = typename Quantizer::template with_bits<widths[Level - 1]>;
};

template <class Quantizer, int Level>
struct quantizer_of_level<Quantizer, Level> {
  using type = Quantizer;
};

//! @brief Tiles for chunks of these words.
template <std::uint32_t... ChunkWords>
struct tile_shape {
  static constexpr std::uint32_t chunk_words[sizeof...(ChunkWords)] = {ChunkWords...};
  static constexpr tile_size size                                   = fit_tile(chunk_words);
  //! Words that all tiles together may leave free besides, where one width ends and the next begins.
  static constexpr std::uint32_t between =
    (ChunkWords + ...) - chunk_words[sizeof...(ChunkWords) - 1] - (sizeof...(ChunkWords) - 1);
  using element = hop_tile<static_cast<int>(size.words),
                           static_cast<int>((size.words - tile_head::words) / chunk_words[0])>;
};

template <class Quantizer, int Size, int... Widths>
struct tile_shape_of {
  using type = tile_shape<code_words<typename Quantizer::template with_bits<Widths>>(Size) + 1 ...>;
};

template <class Quantizer, int Size>
struct tile_shape_of<Quantizer, Size> {
  using type = tile_shape<code_words<Quantizer>(Size) + 1>;
};

}  // namespace detail

//! @brief Decodes the chunks of two tiles, adds them, and encodes the sums: one hop. docs/wire_format.md has the
//! formulas.
//!
//! It depends on its two elements and on nothing else, whatever widths the ranks have agreed on: the head of a tile
//! says which chunks it holds, and what keys the dither of a hop. It is commutative to the last bit, but not
//! associative. A chunk whose sum is not finite gets the scale NaN.
//!
//! This is the definition, for any transport that can call it; executors reduce arrays to the same bits with kernels.
//! @tparam Quantizer  `group_absmax<q, B>` or `lloyd_max<q>`; with `Widths` any width of it.
//! @tparam Size       Coordinates of a chunk.
//! @tparam Widths     Bits of a code on each level, ascending. Without any, all chunks have the quantizer's width.
template <class Quantizer, int Size, int... Widths>
requires(table_codebook<Quantizer> || group_quantizer<Quantizer>) struct requantizing_tiles {
  using shape        = typename detail::tile_shape_of<Quantizer, Size, Widths...>::type;
  using element      = typename shape::element;
  using chunker_type = std::
    conditional_t<sizeof...(Widths) == 0, fixed_chunks<Size>, allocated_chunks<Size, Widths...>>;
  using quantizer_type = Quantizer;
  using dither =
    typename detail::second_dither_of<typename detail::dither_of<Quantizer>::type>::type;
  static constexpr bool native      = false;
  static constexpr bool associative = false;
  static constexpr bool exact       = false;
  using payload_kind          = payload::hops;  //!< Elements are decoded, added and encoded again.
  static constexpr bool tiles = true;           //!< They have heads.
  static constexpr int chunk_size = Size;
  static constexpr int levels = sizeof...(Widths) == 0 ? 1 : static_cast<int>(sizeof...(Widths));

  //! @brief The quantizer of the chunks on a level.
  template <int Level>
  using quantizer_at = typename detail::quantizer_of_level<Quantizer, Level, Widths...>::type;

  static_assert(sizeof(element) % 16 == 0 && std::is_trivially_copyable_v<element>);

  [[nodiscard]] element operator()(element const& a, element const& b) const noexcept
  {
    element sum{};
    sum.about                                            = a.about;
    detail::tile_counts<requantizing_tiles> const counts = counts_of(a.about);
    for (std::uint32_t index = 0; index < counts.chunks(); ++index) {
      detail::part_place const place = counts.place(index);
      at_level(place.level, [&]<class Chunk>(Chunk) {
        int const last             = element::scale_of(static_cast<int>(index));
        float const ours           = detail::bits_float(a.word[last]);
        float const other          = detail::bits_float(b.word[last]);
        std::uint32_t* const words = sum.word + place.word;
        float v[detail::extent(Size)];
        for (int p = 0; p < Size; ++p) {
          v[p] = Chunk::estimate(a.word + place.word, ours, p) +
                 Chunk::estimate(b.word + place.word, other, p);
        }
        sum.word[last] = detail::float_bits(Chunk::template encode<dither>(
          v, words, key_of(a.about, ours, other), number_of(a.about, index)));
      });
    }
    return sum;
  }

  //! @name What a head says of its tile
  //! @{

  //! The chunks of the tile. A head that names more than fit has not come from a codec: its tile holds none, so that no
  //! head leads out of it.
  [[nodiscard]] TERSUM_INLINE static detail::tile_counts<requantizing_tiles> counts_of(
    tile_head const& head) noexcept
  {
    detail::tile_counts<requantizing_tiles> out{};
    TERSUM_UNROLL
    for (int level = 1; level <= levels; ++level) { out.count[level] = head.count(level); }
    if (out.words() > element::room) { out = {}; }
    return out;
  }

  //! The key of a hop's dither. It depends on the scales of both chunks, which differ from hop to hop.
  [[nodiscard]] TERSUM_INLINE static dither_key key_of(tile_head const& head,
                                                       float ours,
                                                       float other) noexcept
  {
    return {
      .seed = head.key(), .step = detail::float_bits(ours) + detail::float_bits(other), .rank = 0};
  }

  //! A number of the chunk that no other chunk of the payload has.
  [[nodiscard]] TERSUM_INLINE static std::uint64_t number_of(tile_head const& head,
                                                             std::uint32_t index) noexcept
  {
    return std::uint64_t{head.number()} * element::chunks + index;
  }
  //! @}

 private:
  template <int Level = 1, class Body>
  static void at_level(std::uint32_t level, Body const& body)
  {
    if constexpr (Level < levels) {
      if (level > Level) { return at_level<Level + 1>(level, body); }
    }
    body(detail::hop_chunk<quantizer_at<Level>, Size>{});
  }
};

static_assert(reduce_op<requantizing_tiles<group_absmax<8, 16>, 256, 2, 4, 8>>,
              "tersum: must model tersum::reduce_op");

}  // namespace tersum::inline v0

#include <tersum/baseline/detail/requantize_array.hpp>
