// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of parts on the CPU: their codes, scales and rows.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/exchange/detail/cpu/cpu_metric.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tersum::inline v0::detail {

//! @brief What stages do with chunks of parts on `threads` threads with one instruction set.
template <class Codec, class Element>
class cpu_part_chunks : public cpu_metric_chunks<Codec, Element> {
 public:
  using cpu_metric_chunks<Codec, Element>::cpu_metric_chunks;

 protected:
  using base = cpu_metric_chunks<Codec, Element>;
  using base::args_;
  using base::rotate_back;
  using base::set_;
  using base::size;
  using base::threads_;
  using base::to_own_units;
  using base::with_chunk;
  using base::with_rotated;
  using base::with_values;

  //! Rotations need not be normalized: this takes back by what forward and backward together multiply.
  static constexpr float unit =
    1.0f / static_cast<float>(square_gain<typename Codec::rotator_type>);
  using dither = typename Codec::dither_type;

  using map_type = decltype(make_part_map(std::declval<exchange_args<Codec, Element>>()));

  //! Writes what feedback keeps of the first `count` values of a chunk, of which `own` was sent.
  void keep_lost(std::uint64_t chunk,
                 float const* values,
                 float const* own,
                 std::uint32_t count,
                 residual_element<Codec>* residual) const
  {
    [[maybe_unused]] float const weight = weight_of_kept(args_);
    std::uint32_t draw                  = draw_of_kept(args_, chunk, args_.rank);
    for (std::uint32_t i = 0; i < count; ++i, draw += draw_stride) {
      float const kept = weighed<Codec>(host_group{}, weight, to_float(residual[i]));
      float const lost = host_group::subtract(values[i], own[i]);
      float const next = args_.codec.feedback.after(host_group{}, values[i], lost, kept);
      residual[i]      = kept_value<residual_element<Codec>>(next, draw);
    }
  }

  //! Clears what lies between the codes and the scales of a part.
  template <class Map>
  void clear_rest(Map const& map, std::uint32_t part, std::uint32_t* words) const
  {
    part_rest const rest = map.rest_of(part);
    std::fill(words + rest.begin, words + rest.end, 0u);
  }

  //! Brings the values of a chunk into the form in which they are added and encoded: rotated and in rows, or, without a
  //! rotation, as they lie in the gradient.
  template <class From>
  void to_rows(std::uint64_t chunk, From from, float* rows) const
  {
    if constexpr (Codec::rotates_chunks || Codec::rotates_in_memory) {
      with_rotated(chunk, from, [&](auto rotated) {
        rotate_to_rows<size, Codec::rotates_chunks>(
          set_, args_.header->sign_key, chunk, rotated, rows);
      });
    } else {
      constexpr int line = 16;
      for (int first = 0; first < size; first += line) {
        fetch_beyond<false>(from + first);
        for (int i = first; i < first + line; ++i) { rows[i] = to_float(from[i]); }
      }
    }
  }

  //! The inverse of that. Overwrites the rows.
  template <class To>
  void from_rows(std::uint64_t chunk, float* rows, To to) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) float x[size];
      rotate_from_rows<size, false>(set_, args_.header->sign_key, chunk, 1.0f, rows, +x);
      rotate_back(chunk, x);
      for (float& value : x) { value = value * unit; }
      store_whole(set_, x, to, size);
    } else if constexpr (Codec::rotates_chunks) {
      rotate_from_rows<size>(set_, args_.header->sign_key, chunk, unit, rows, to);
    } else {
      store_whole(set_, rows, to, size);
    }
  }

  //! Writes rows as a chunk of a part, dithered by `key`. The chunk's scale is multiplied by `share`.
  template <class Dither, class Map>
  void quantize(Map const& map,
                part_place const& place,
                std::uint64_t chunk,
                dither_key const& key,
                float const* rows,
                float share,
                std::uint32_t* words) const
  {
    at_level_of(map, args_.codec, place.level, [&](auto const& codec) {
      using quantizer   = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      float const scale = chunk_codes<quantizer, size>::template encode<Dither>(
        set_, key, chunk, rows, words + place.word);
      words[map.scale_word(place.index)] = float_bits(scale * share);
    });
  }

  //! Writes a chunk of the gradient: in place where no rotation and no conversion makes rows of it.
  template <class From>
  void quantize_from(map_type const& map,
                     part_place const& place,
                     std::uint64_t chunk,
                     From from,
                     std::uint32_t* words) const
  {
    if constexpr (std::is_same_v<From, float const*> && !Codec::rotates_chunks &&
                  !Codec::rotates_in_memory) {
      quantize<dither>(map, place, chunk, key_of(args_), from, 1.0f, words);
    } else {
      alignas(64) float rows[size];
      to_rows(chunk, from, rows);
      quantize<dither>(map, place, chunk, key_of(args_), rows, 1.0f, words);
    }
  }

  //! Adds `factor` times the decoded chunk of a part to the rows. If the rows are `fresh` it overwrites them.
  template <class Map>
  void add_estimate(Map const& map,
                    part_place const& place,
                    std::uint32_t const* words,
                    float factor,
                    float* rows,
                    bool fresh = false) const
  {
    float const scale = bits_float(words[map.scale_word(place.index)]) * factor;
    at_level_of(map, args_.codec, place.level, [&](auto const& codec) {
      using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      chunk_codes<quantizer, size>::add(set_, words + place.word, scale, rows, fresh);
    });
  }

  //! Decodes a chunk of a part, with all of its coordinates, times `factor`.
  template <class Map, class To>
  void estimate(Map const& map,
                part_place const& place,
                std::uint64_t chunk,
                std::uint32_t const* words,
                float factor,
                To to) const
  {
    alignas(64) float rows[size];
    add_estimate(map, place, words, factor, rows, true);
    from_rows(chunk, rows, to);
  }

  //! The chunk's number in the gradient under fixed chunks, otherwise a number that no other chunk has.
  [[nodiscard]] static std::uint64_t chunk_of(map_type const& map, part_place const& place)
  {
    return map.chunk_of(place.part, place.index);
  }

  //! Encodes the gradient, for all parts.
  void encode_parts(map_type const& map) const;

  //! Writes what this rank's encodings lost to the residuals.
  void keep_residual(map_type const& map) const;
};

template <class Codec, class Element>
void cpu_part_chunks<Codec, Element>::encode_parts(map_type const& map) const
{
  parallel_for(threads_, map.parts(), [&](std::uint64_t part) {
    clear_rest(map, static_cast<std::uint32_t>(part), args_.payload + map.begin(part));
  });
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place = find_part(args_, map, chunk);
    if (place.level == 0) { return; }
    with_values(chunk, [&](auto from) {
      quantize_from(map, place, chunk, from, args_.payload + map.begin(place.part));
    });
  });
}

template <class Codec, class Element>
void cpu_part_chunks<Codec, Element>::keep_residual(map_type const& map) const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place  = find_part(args_, map, chunk);
    chunk_entry const entry = args_.table[chunk];
    auto* const residual    = this->kept_place(chunk);
    // No rank of a sharded exchange knows of values in all shards that are not finite, and others may have lost them.
    std::uint32_t const* const part = args_.payload + map.begin(place.part);
    if (place.level > 0 && !is_finite(bits_float(part[map.scale_word(place.index)]))) { return; }
    with_chunk(chunk, [&](float const* whole) {
      alignas(64) float own[size]{};
      if (place.level > 0) {
        estimate(map, place, chunk, part, 1.0f, +own);
        to_own_units(chunk, own);
      }
      keep_lost(chunk, whole, own, entry.length, residual);
    });
  });
}

}  // namespace tersum::inline v0::detail
