// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the parts of an exchange lie, and of which codes they are.

#pragma once

#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Where the chunks of a codec with parts lie in this exchange.
template <class Codec, class Element>
requires(scattering<Codec> || copying<Codec>) [[nodiscard]] TERSUM_INLINE part_map
  make_part_map(exchange_args<Codec, Element> const& args)
{
  part_map map{};
  map.world      = copying<Codec> ? 1u : static_cast<std::uint32_t>(args.world);
  map.inverse    = copying<Codec> ? 0xffffffffu : args.parts.inverse_world;
  map.part_words = args.parts.part_words;
  if constexpr (selects<Codec>) {
    TERSUM_UNROLL
    for (int level = 1; level <= max_levels; ++level) {
      map.count[level] = args.selection.scratch->header.count[level];
      map.words[level] = args.selection.rule.words[level];
    }
  } else {
    map.count[1] = static_cast<std::uint32_t>(args.chunks);
    map.words[1] = code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  return map;
}

template <in_shards Codec, class Element>
[[nodiscard]] TERSUM_INLINE shard_map make_part_map(exchange_args<Codec, Element> const& args)
{
  return {.records     = args.parts.records,
          .world       = static_cast<std::uint32_t>(args.world),
          .chunk_words = code_words<typename Codec::quantizer_type>(Codec::chunk_size)};
}

//! @brief The same for parts of the mean, which is what all ranks decode.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto make_mean_map(exchange_args<Codec, Element> const& args)
{
  if constexpr (ways_differ<Codec>) {
    mean_map map{make_part_map(args)};
    map.part_words = args.parts.mean_words;
    map.words[1]   = code_words<typename Codec::mean_quantizer_type>(Codec::chunk_size);
    return map;
  } else {
    return make_part_map(args);
  }
}

//! @brief What says of which codes the mean is, where the ways differ.
template <class Codec>
struct mean_codes {
  using quantizer_type = typename Codec::mean_quantizer_type;
};

//! @brief What says of which codes the chunks of a map are: the codec, but for `mean_map`.
template <class Codec, class Map>
using codes_of_map = std::conditional_t<std::is_same_v<Map, mean_map>, mean_codes<Codec>, Codec>;

//! @brief Calls body(codec) with what says of which codes a chunk of a map is, on its level.
TERSUM_EXEC_CHECK_DISABLE
template <class Map, class Codec, class Body>
TERSUM_INLINE void at_level_of(Map const&,
                               [[maybe_unused]] Codec const& codec,
                               [[maybe_unused]] std::uint32_t level,
                               Body const& body)
{
  if constexpr (std::is_same_v<Map, mean_map>) {
    body(mean_codes<Codec>{});
  } else {
    at_level(codec, level, body);
  }
}

//! @brief The place in a map of the mean of a chunk whose place among the parts that are sent is known.
template <class Map>
[[nodiscard]] TERSUM_INLINE part_place place_of_mean([[maybe_unused]] Map const& map,
                                                     part_place const& place)
{
  if constexpr (std::is_same_v<Map, mean_map>) {
    return map.of_index(place.part, place.index);
  } else {
    return place;
  }
}

//! @brief Where a chunk lies among the parts.
template <class Codec, class Element, class Map>
[[nodiscard]] TERSUM_INLINE part_place find_part(
  [[maybe_unused]] exchange_args<Codec, Element> const& args, Map const& map, std::uint64_t chunk)
{
  if constexpr (selects<Codec>) {
    std::uint32_t const place = args.selection.places[chunk];
    return map.of_slot(place & ((1u << place_shift) - 1), place >> place_shift);
  } else if constexpr (requires { map.of_chunk(std::uint32_t{}); }) {
    return map.of_chunk(static_cast<std::uint32_t>(chunk));
  } else {
    return map.of_slot(1, static_cast<std::uint32_t>(chunk));
  }
}

}  // namespace tersum::inline v0::detail
