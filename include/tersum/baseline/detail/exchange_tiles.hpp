// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the chunks of an exchange lie in the elements that hops add. Exchanges find these functions by their arguments.

#pragma once

#include <tersum/baseline/detail/tile_map.hpp>
#include <tersum/baseline/hop_tile.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Where the chunks lie in this exchange: in the blocks or tiles that hops add.
template <requantizing Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto make_part_map(exchange_args<Codec, Element> const& args)
{
  tile_map<typename Codec::payload_op> map{args.parts.tiles, {}};
  if constexpr (selects<Codec>) {
    TERSUM_UNROLL
    for (int level = 1; level <= Codec::payload_op::levels; ++level) {
      map.count[level] = args.selection.scratch->header.count[level];
    }
  } else {
    map.count[1] = static_cast<std::uint32_t>(args.chunks);
  }
  return map;
}

//! @brief The head of a tile of the exchange under way.
template <tiling Codec, class Element, class Map>
[[nodiscard]] TERSUM_INLINE tile_head make_head(exchange_args<Codec, Element> const& args,
                                                Map const& map,
                                                std::uint32_t tile)
{
  return tile_head::make<Codec::payload_op::levels>(
    args.header->sign_key, tile, map.counts_of(tile).count);
}

}  // namespace tersum::inline v0::detail
