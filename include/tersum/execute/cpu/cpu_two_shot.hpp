// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload rounds of a two-shot codec on the CPU.

#pragma once

#include <tersum/execute/cpu/cpu_coded_chunks.hpp>
#include <tersum/execute/cpu/cpu_stages.hpp>
#include <tersum/schedule/part_map.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tersum::inline v0::detail {

//! @brief The stages of two_shot on `threads` threads with one instruction set.
template <class Codec, class Element>
class cpu_two_shot : public cpu_stages<Codec, Element> {
 public:
  using cpu_stages<Codec, Element>::cpu_stages;

  //! Gradient to this rank's codes for all parts.
  void encode() const;

  //! All ranks' codes of this rank's part to those of their mean.
  void recompress() const;

  //! All parts of the mean to gradient; what this rank's encodings lost to its residuals.
  void decode() const;

 private:
  using base = cpu_stages<Codec, Element>;
  using base::args_;
  using base::raise_flag;
  using base::set_;
  using base::size;
  using base::threads_;
  using base::with_chunk;

  //! Rotated values are unnormalized both ways.
  static constexpr float unit = 1.0f / static_cast<float>(size);
  using dither                = typename Codec::dither_type;
  using second_dither         = typename second_dither_of<dither>::type;

  using map_type = decltype(make_part_map(std::declval<exchange_args<Codec, Element>>()));

  //! Clears what lies between the codes and the scales of a part; a tile gets its head.
  void clear_rest(map_type const& map, std::uint32_t part, std::uint32_t* words) const
  {
    part_rest const rest = map.rest_of(part);
    std::fill(words + rest.begin, words + rest.end, 0u);
    if constexpr (tiling<Codec>) {
      tile_head const head = make_head(args_, map, part);
      std::copy_n(head.word, tile_head::words, words - tile_head::words);
    }
  }

  //! Values of a chunk as they are added and encoded: rotated, in rows, or as they lie in the gradient.
  template <class From>
  void to_rows(std::uint64_t chunk, From const* from, float* rows) const
  {
    if constexpr (Codec::rotates_chunks) {
      rotate_to_rows<size>(set_, args_.header->sign_key, chunk, from, rows);
    } else {
      for (int i = 0; i < size; ++i) { rows[i] = to_float(from[i]); }
    }
  }

  //! The way back. Overwrites the rows.
  template <class To>
  void from_rows(std::uint64_t chunk, float* rows, To* to) const
  {
    if constexpr (Codec::rotates_chunks) {
      rotate_from_rows<size>(set_, args_.header->sign_key, chunk, unit, rows, to);
    } else {
      for (int i = 0; i < size; ++i) { to[i] = from_float<To>(rows[i]); }
    }
  }

  //! Encodes rows as a chunk of a part, with what dithers them; the scale is multiplied by `share`.
  template <class Dither>
  void quantize(map_type const& map,
                part_place const& place,
                std::uint64_t chunk,
                dither_key const& key,
                float const* rows,
                float share,
                std::uint32_t* words) const
  {
    at_level(args_.codec, place.level, [&](auto const& codec) {
      using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      float const scale =
        encode_rows<quantizer, Dither, size>(set_, key, chunk, rows, words + place.word);
      words[map.scale_word(place.index)] = float_bits(scale * share);
    });
  }

  //! Adds `factor` times what a part says of a chunk to rows, or makes it the rows where they are fresh.
  void add_estimate(map_type const& map,
                    part_place const& place,
                    std::uint32_t const* words,
                    float factor,
                    float* rows,
                    bool fresh = false) const
  {
    float const scale = bits_float(words[map.scale_word(place.index)]) * factor;
    at_level(args_.codec, place.level, [&](auto const& codec) {
      using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      if (fresh) {
        set_rows<quantizer, size>(set_, words + place.word, scale, rows);
      } else {
        add_rows<quantizer, size>(set_, words + place.word, scale, rows);
      }
    });
  }

  //! `factor` times what a part says of a chunk, all of its coordinates.
  template <class To>
  void estimate(map_type const& map,
                part_place const& place,
                std::uint64_t chunk,
                std::uint32_t const* words,
                float factor,
                To* to) const
  {
    alignas(64) float rows[size];
    add_estimate(map, place, words, factor, rows, true);
    from_rows(chunk, rows, to);
  }

  //! The sum over the ranks of an owned chunk, and what the owner kept of it.
  void add_ranks(map_type const& map, part_place const& place, float* rows) const;

  //! The chunk's number in the gradient under fixed chunks, otherwise a number that no other chunk has.
  [[nodiscard]] std::uint64_t chunk_of(part_place const& place) const
  {
    return place.index * static_cast<std::uint64_t>(args_.world) + place.part;
  }

  //! Zero, or NaN where the gradient of a chunk that does not travel was not finite.
  [[nodiscard]] float scale_of_unsent(std::uint64_t chunk) const
  {
    if constexpr (Codec::selects) {
      using scalar      = typename Codec::norm_scalar;
      auto const agreed = static_cast<scalar const*>(args_.agreed);
      // Without a budget no norm has travelled.
      if (has_agreed(args_)) { return 0.0f * to_float(agreed[chunk]); }
    }
    return 0.0f;
  }

  void keep_rest(map_type const& map) const;
  void keep_owner_rest(map_type const& map) const;
};

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::encode() const
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
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::add_ranks(map_type const& map,
                                             part_place const& place,
                                             float* rows) const
{
  if constexpr (Codec::owner_feeds_back) {
    float const* const kept =
      args_.parts.owner_residual + static_cast<std::uint64_t>(place.index) * size;
    to_rows(chunk_of(place), kept, rows);
  }
  for (std::uint64_t rank = 0; rank < map.world; ++rank) {
    bool const fresh = rank == 0 && !Codec::owner_feeds_back;
    add_estimate(map, place, args_.parts.received + map.begin(rank), 1.0f, rows, fresh);
  }
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::recompress() const
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
    quantize<second_dither>(map, place, chunk_of(place), key, rows, share, own);
  });
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::decode() const
{
  map_type const map = make_part_map(args_);
  // Owners have sent means, hops a sum.
  float const share = recoding<Codec> ? 1.0f / static_cast<float>(args_.world) : 1.0f;
  parallel_for(threads_, map.parts(), [&](std::uint64_t number) {
    auto const part                  = static_cast<std::uint32_t>(number);
    std::uint32_t const* const words = args_.parts.gathered + map.begin(part);
    for (std::uint32_t index = 0; index < map.chunks_of(part); ++index) {
      if (!is_finite(bits_float(words[map.scale_word(index)]))) { raise_flag(); }
    }
  });
  if constexpr (Codec::feeds_back) {
    if (!step_is_poisoned(args_)) {
      keep_rest(map);
      if constexpr (Codec::owner_feeds_back) { keep_owner_rest(map); }
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
      // Zeros, or NaN where a gradient was not finite.
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
void cpu_two_shot<Codec, Element>::keep_rest(map_type const& map) const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place  = find_part(args_, map, chunk);
    chunk_entry const entry = args_.table[chunk];
    float* const residual   = args_.residual + entry.offset;
    with_chunk(chunk, [&](float const* whole) {
      if (place.level == 0) {
        std::copy_n(whole, entry.length, residual);
      } else {
        alignas(64) float own[size];
        estimate(map, place, chunk, args_.payload + map.begin(place.part), 1.0f, own);
        for (std::uint32_t i = 0; i < entry.length; ++i) { residual[i] = whole[i] - own[i]; }
      }
    });
  });
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::keep_owner_rest(map_type const& map) const
{
  std::uint32_t* const own = args_.parts.gathered + map.begin(args_.rank);
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    alignas(64) float rows[size];
    add_ranks(map, place, rows);
    add_estimate(map, place, own, -static_cast<float>(args_.world), rows);
    from_rows(chunk_of(place), rows, args_.parts.owner_residual + index * size);
  });
}

}  // namespace tersum::inline v0::detail
