// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cpu_parts.hpp.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_parts<Codec, Element>::encode() const
{
  map_type const map = make_part_map(args_);
  parallel_for(threads_, map.parts(), [&](std::uint64_t part) {
    clear_rest(map, static_cast<std::uint32_t>(part), args_.payload + map.begin(part));
  });
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place = find_part(args_, map, chunk);
    if (place.level == 0) { return; }
    with_chunk(chunk, [&](auto const* from) {
      alignas(64) float rows[size];
      to_rows(chunk, from, rows);
      std::uint32_t* const part = args_.payload + map.begin(place.part);
      quantize<dither>(map, place, chunk, key_of(args_), rows, 1.0f, part);
    });
  });
  if constexpr (sharding<Codec>) {
    share_cut_chunks(map);
    if constexpr (feeds_back<Codec>) { keep_residual(map); }
  }
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::share_cut_chunks(map_type const& map) const
{
  for (std::uint32_t part = 0; part < map.parts(); ++part) {
    if (map.chunks_of(part) == 0) { continue; }
    auto const chunk      = static_cast<std::uint32_t>(map.chunk_of(part, 0));
    part_place const from = map.of_slot(1, chunk);
    if (from.part == part) { continue; }
    std::uint32_t* const to            = args_.payload + map.begin(part);
    std::uint32_t const* const encoded = args_.payload + map.begin(from.part);
    std::copy_n(encoded + from.word, map.chunk_words, to + map.of_index(part, 0).word);
    to[map.scale_word(0)] = encoded[map.scale_word(from.index)];
  }
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::add_shard() const
{
  map_type const map        = make_part_map(args_);
  float const share         = 1.0f / static_cast<float>(args_.world);
  std::uint64_t const begin = args_.parts.begin;
  std::uint64_t const end   = args_.parts.end;
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place    = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    std::uint64_t const chunk = chunk_of(map, place);
    alignas(64) float rows[size]{};
    for (std::uint32_t rank = 0; rank < map.world; ++rank) {
      std::uint32_t const* const part = args_.parts.received + map.received(rank, args_.rank);
      if (!is_finite(bits_float(part[map.scale_word(place.index)]))) { raise_flag(args_); }
      add_estimate(map, place, part, share, rows);
    }
    chunk_entry const entry   = args_.table[chunk];
    std::uint64_t const first = std::max(entry.offset, begin);
    std::uint64_t const last  = std::min(entry.offset + entry.length, end);
    if (last - first == static_cast<std::uint64_t>(size)) {
      from_rows(chunk, rows, args_.gradient + (first - begin));
    } else {
      Element copy[size];
      from_rows(chunk, rows, copy);
      std::copy(copy + (first - entry.offset),
                copy + (last - entry.offset),
                args_.gradient + (first - begin));
    }
  });
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::add_ranks(map_type const& map,
                                          part_place const& place,
                                          float* rows) const
{
  if constexpr (owner_feeds_back<Codec>) {
    float const* const kept =
      args_.parts.owner_residual + static_cast<std::uint64_t>(place.index) * size;
    to_rows(chunk_of(map, place), kept, rows);
  }
  for (std::uint64_t rank = 0; rank < map.world; ++rank) {
    bool const fresh = rank == 0 && !owner_feeds_back<Codec>;
    add_estimate(map, place, args_.parts.received + map.begin(rank), 1.0f, rows, fresh);
  }
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::recompress() const
{
  map_type const map       = make_part_map(args_);
  std::uint32_t* const own = args_.parts.gathered + map.begin(args_.rank);
  float const share        = 1.0f / static_cast<float>(args_.world);
  dither_key key           = key_of(args_);
  key.rank                 = second_rank;
  if (args_.parts.recompressed.begin == 0) { clear_rest(map, args_.rank, own); }
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    if (!is_at_hand(args_, place.word)) { return; }
    alignas(64) float rows[size];
    add_ranks(map, place, rows);
    quantize<second_dither>(map, place, chunk_of(map, place), key, rows, share, own);
  });
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::decode() const
{
  map_type const map = make_part_map(args_);
  // Owners have sent means, but hops have made a sum.
  float const share = requantizing<Codec> ? 1.0f / static_cast<float>(args_.world) : 1.0f;
  parallel_for(threads_, map.parts(), [&](std::uint64_t number) {
    auto const part                  = static_cast<std::uint32_t>(number);
    std::uint32_t const* const words = args_.parts.gathered + map.begin(part);
    for (std::uint32_t index = 0; index < map.chunks_of(part); ++index) {
      if (!is_finite(bits_float(words[map.scale_word(index)]))) { raise_flag(args_); }
    }
  });
  if constexpr (feeds_back<Codec>) {
    if (!step_is_poisoned(args_)) {
      keep_residual(map);
      if constexpr (owner_feeds_back<Codec>) { keep_owner_residual(map); }
    }
  }
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place     = find_part(args_, map, chunk);
    std::uint32_t* const words = args_.parts.gathered + map.begin(place.part);
    chunk_entry const entry    = args_.table[chunk];
    Element* const to          = args_.gradient + entry.offset;
    float const scale =
      place.level == 0 ? scale_of_unsent(chunk) : bits_float(words[map.scale_word(place.index)]);
    if (!(scale > 0.0f)) {
      // The chunk has not travelled: zeros, or NaN if a gradient was not finite.
      fill_chunk(to, entry.length, 0.0f * scale);
    } else if (entry.length == size) {
      estimate(map, place, chunk, words, share, to);
    } else {
      Element copy[size];
      estimate(map, place, chunk, words, share, copy);
      std::copy_n(copy, entry.length, to);
    }
  });
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::keep_residual(map_type const& map) const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place  = find_part(args_, map, chunk);
    chunk_entry const entry = args_.table[chunk];
    float* const residual   = args_.residual + entry.offset;
    if constexpr (sharding<Codec>) {
      // No rank of a sharded exchange knows of values in all shards that are not finite.
      std::uint32_t const* const part = args_.payload + map.begin(place.part);
      if (!is_finite(bits_float(part[map.scale_word(place.index)]))) { return; }
    }
    with_chunk(chunk, [&](float const* whole) {
      alignas(64) float own[size]{};
      if (place.level > 0) {
        estimate(map, place, chunk, args_.payload + map.begin(place.part), 1.0f, own);
      }
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        residual[i] = args_.codec.feedback.after(
          host_group{}, whole[i], host_group::subtract(whole[i], own[i]), residual[i]);
      }
    });
  });
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::keep_owner_residual(map_type const& map) const
{
  std::uint32_t* const own = args_.parts.gathered + map.begin(args_.rank);
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    alignas(64) float rows[size];
    add_ranks(map, place, rows);
    add_estimate(map, place, own, -static_cast<float>(args_.world), rows);
    from_rows(chunk_of(map, place), rows, args_.parts.owner_residual + index * size);
  });
}

}  // namespace tersum::inline v0::detail
