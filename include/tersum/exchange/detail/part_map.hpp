// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which rank owns a chunk under two_shot, which ranks it is sent to under a sharded codec, and which rank publishes it; and where in their
//! parts it lies, in which codes. Part of the wire format.

#pragma once

#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/form/detail/part_args.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/state.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief A chunk's place: it is number `index` of the chunks of rank `part`, and its codes begin at `word` of that part.
struct part_place {
  std::uint32_t level;  //!< 0: it does not travel.
  std::uint32_t part;
  std::uint32_t index;
  std::uint64_t word;
};

//! @brief Words of a part between its codes and its scales.
struct part_rest {
  std::uint64_t begin, end;
};

//! @brief The chunks that travel, the widest first and each width in order, are dealt to the parts like cards.
//!
//! So the sizes of parts differ by at most one chunk. Codes fill a part from its front, the chunks' scales from its back.
struct part_map {
  std::uint32_t world;
  divisor by_world;
  std::uint64_t part_words;  //!< Words of a part, a multiple of 4.
  std::uint32_t
    count[max_levels + 1];  //!< Chunks on each level from 1 on, less than 2^31 together.
  std::uint32_t words[max_levels + 1];  //!< Words of codes of a chunk on each level.

  [[nodiscard]] TERSUM_INLINE std::uint32_t parts() const { return world; }

  //! @brief The first word of a part in an array of parts.
  [[nodiscard]] TERSUM_INLINE std::uint64_t begin(std::uint64_t part) const
  {
    return part * part_words;
  }

  //! @brief The first word of what a rank sent of a part, among what all ranks sent of it.
  [[nodiscard]] TERSUM_INLINE std::uint64_t received(std::uint64_t rank, std::uint32_t) const
  {
    return begin(rank);
  }

  //! @brief The place of number `slot` among the chunks of a level.
  [[nodiscard]] TERSUM_INLINE part_place of_slot(std::uint32_t level, std::uint32_t slot) const
  {
    if (level == 0) { return {}; }
    std::uint32_t position = slot;
    TERSUM_UNROLL
    for (std::uint32_t wider = 1; wider <= max_levels; ++wider) {
      position += wider > level ? count[wider] : 0u;
    }
    return of_position(position);
  }

  //! @brief The place of the chunk at that position among all of them, the widest first; level 0 behind the last one that travels.
  [[nodiscard]] TERSUM_INLINE part_place of_position(std::uint32_t position) const
  {
    return of_index(position % world, position / world);
  }

  //! @brief The place of a chunk where there is one level. `of_index` would divide once more to find that.
  [[nodiscard]] TERSUM_INLINE part_place of_chunk(std::uint32_t chunk) const
  {
    std::uint32_t const index = by_world.quotient(chunk);
    return {1, chunk - index * world, index, static_cast<std::uint64_t>(index) * words[1]};
  }

  //! @brief The place of number `index` of a part.
  [[nodiscard]] TERSUM_INLINE part_place of_index(std::uint32_t part, std::uint32_t index) const
  {
    part_place place{0, part, index, 0};
    std::uint32_t dealt = 0;  // chunks of wider levels
    std::uint32_t first = 0;  // those in this part
    TERSUM_UNROLL
    for (std::uint32_t level = max_levels; level > 0; --level) {
      if (count[level] == 0) { continue; }
      dealt += count[level];
      std::uint32_t const end  = in_part(part, dealt);
      std::uint32_t const here = minimum(end, index) - minimum(first, index);
      place.word += static_cast<std::uint64_t>(here) * words[level];
      if (index >= first && index < end) { place.level = level; }
      first = end;
    }
    return place;
  }

  //! @brief A number that number `index` of a part alone has: under fixed chunks that of the chunk in the gradient.
  [[nodiscard]] TERSUM_INLINE std::uint64_t chunk_of(std::uint32_t part, std::uint32_t index) const
  {
    return index * world + part;
  }

  //! @brief Chunks of a part.
  [[nodiscard]] TERSUM_INLINE std::uint32_t chunks_of(std::uint32_t part) const
  {
    std::uint32_t all = 0;
    TERSUM_UNROLL
    for (std::uint32_t level = 1; level <= max_levels; ++level) { all += count[level]; }
    return in_part(part, all);
  }

  //! @brief The words of a part between its codes and its scales.
  [[nodiscard]] TERSUM_INLINE part_rest rest_of(std::uint32_t part) const
  {
    std::uint32_t const chunks = chunks_of(part);
    return {of_index(part, chunks).word, part_words - chunks};
  }

  //! @brief The word of a part in which the scale of its chunk number `index` lies.
  [[nodiscard]] TERSUM_INLINE std::uint64_t scale_word(std::uint32_t index) const
  {
    return part_words - 1 - index;
  }

 private:
  //! How many of the first `dealt` chunks a part gets.
  [[nodiscard]] TERSUM_INLINE std::uint32_t in_part(std::uint32_t part, std::uint32_t dealt) const
  {
    return (dealt + world - 1 - part) / world;
  }
};

//! @brief Where chunks lie in the parts of a mean whose codes are not those that the ranks send, and which codes these are.
template <class Codec>
struct mean_map : part_map {
  using quantizer_type = typename Codec::mean_quantizer_type;
};

//! @brief A rank's part holds the chunks that its shard has a coordinate of, in the order of the gradient.
//!
//! The scales of the chunks come first, then zeros up to whole 16 bytes, then the codes. A chunk that a boundary cuts lies in
//! the parts of all ranks that it belongs to; its *first* rank is the one whose shard has its first coordinate.
struct shard_map {
  shard_record const* records;
  std::uint32_t world;
  std::uint32_t chunk_words;  //!< Of the codes of a chunk, a multiple of 4.

  [[nodiscard]] TERSUM_INLINE std::uint32_t parts() const { return world; }

  //! @brief The first word of a part in an array of parts.
  [[nodiscard]] TERSUM_INLINE std::uint64_t begin(std::uint64_t part) const
  {
    return records[part].word;
  }

  //! @brief The first word of what a rank sent of a part, among what all ranks sent of it.
  [[nodiscard]] TERSUM_INLINE std::uint64_t received(std::uint64_t rank, std::uint32_t part) const
  {
    return rank * of_index(part, chunks_of(part)).word;
  }

  //! @brief The place of a chunk in the part of its first rank. Every chunk has the level 1.
  [[nodiscard]] TERSUM_INLINE part_place of_chunk(std::uint32_t chunk) const
  {
    // The ends of shards ascend: the first shard that ends after the chunk has begun.
    std::uint32_t least = 0;
    std::uint32_t most  = world - 1;
    while (least < most) {
      std::uint32_t const middle = least + (most - least) / 2;
      if (records[middle].first + records[middle].chunks > chunk) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return of_index(least, chunk - records[least].first);
  }

  //! @brief The place of number `index` of a part.
  [[nodiscard]] TERSUM_INLINE part_place of_index(std::uint32_t part, std::uint32_t index) const
  {
    std::uint64_t const scales = round_up(chunks_of(part), 4);
    return {1, part, index, scales + static_cast<std::uint64_t>(index) * chunk_words};
  }

  //! @brief The number in the gradient of number `index` of a part.
  [[nodiscard]] TERSUM_INLINE std::uint64_t chunk_of(std::uint32_t part, std::uint32_t index) const
  {
    return records[part].first + index;
  }

  //! @brief Chunks of a part.
  [[nodiscard]] TERSUM_INLINE std::uint32_t chunks_of(std::uint32_t part) const
  {
    return records[part].chunks;
  }

  //! @brief The words of a part between its scales and its codes.
  [[nodiscard]] TERSUM_INLINE part_rest rest_of(std::uint32_t part) const
  {
    return {chunks_of(part), round_up(chunks_of(part), 4)};
  }

  //! @brief The word of a part in which the scale of its chunk number `index` lies.
  [[nodiscard]] TERSUM_INLINE std::uint64_t scale_word(std::uint32_t index) const { return index; }
};

//! @brief Where the chunks of a codec with parts lie in this exchange.
//! @{
template <class Codec, class Element>
requires(scattering<Codec> || copying<Codec>) [[nodiscard]] TERSUM_INLINE part_map
  make_part_map(exchange_args<Codec, Element> const& args)
{
  part_map map{};
  map.world      = copying<Codec> ? 1u : static_cast<std::uint32_t>(args.world);
  map.by_world   = copying<Codec> ? divisor::of(1) : args.parts.ranks;
  map.part_words = args.parts.part_words;
  args.selection.count_levels(
    map, args.chunks, code_words<typename Codec::quantizer_type>(Codec::chunk_size));
  return map;
}
template <in_shards Codec, class Element>
[[nodiscard]] TERSUM_INLINE shard_map make_part_map(exchange_args<Codec, Element> const& args)
{
  return {.records     = args.parts.records,
          .world       = static_cast<std::uint32_t>(args.world),
          .chunk_words = code_words<typename Codec::quantizer_type>(Codec::chunk_size)};
}
//! @}

//! @brief The same for parts of the mean, which is what all ranks decode.
//! @{
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto make_mean_map(exchange_args<Codec, Element> const& args)
{
  return make_part_map(args);
}
template <ways_differ Codec, class Element>
[[nodiscard]] TERSUM_INLINE mean_map<Codec> make_mean_map(exchange_args<Codec, Element> const& args)
{
  mean_map<Codec> map{make_part_map(args)};
  map.part_words = args.parts.mean_words;
  map.words[1]   = code_words<typename Codec::mean_quantizer_type>(Codec::chunk_size);
  return map;
}
//! @}

//! @brief What says of which codes the chunks of a map are: the codec, or a `mean_map`.
template <class Codec, class Map>
using codes_of_map = std::conditional_t<std::is_same_v<Map, mean_map<Codec>>, Map, Codec>;

//! @brief Calls body(codec) with what says of which codes a chunk of a map is, on its level.
//! @{
TERSUM_EXEC_CHECK_DISABLE
template <class Map, class Codec, class Body>
TERSUM_INLINE void at_level_of(Map const&,
                               Codec const& codec,
                               std::uint32_t level,
                               Body const& body)
{
  at_level(codec, level, body);
}
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, class Body>
TERSUM_INLINE void at_level_of(mean_map<Codec> const& map,
                               Codec const&,
                               std::uint32_t,
                               Body const& body)
{
  body(map);
}
//! @}

//! @brief The place in a map of the mean of a chunk whose place among the parts that are sent is known.
//! @{
template <class Map>
[[nodiscard]] TERSUM_INLINE part_place place_of_mean(Map const&, part_place const& place)
{
  return place;
}
template <class Codec>
[[nodiscard]] TERSUM_INLINE part_place place_of_mean(mean_map<Codec> const& map,
                                                     part_place const& place)
{
  return map.of_index(place.part, place.index);
}
//! @}

}  // namespace tersum::inline v0::detail
