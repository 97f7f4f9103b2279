// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload rounds of a two-shot codec on the CPU.

#pragma once

#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/part_map.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tersum::inline v0::detail {

//! @brief The stages of two_shot on `threads` threads with one instruction set.
template <class Codec, class Element>
class cpu_parts : public cpu_stages<Codec, Element> {
 public:
  using cpu_stages<Codec, Element>::cpu_stages;

  //! Encodes the gradient, for all parts.
  void encode() const;

  //! Decodes what all ranks sent of this rank's part, adds it up, and encodes the mean.
  void recompress() const;

  //! Decodes what all ranks sent of this rank's part, adds it up, and writes the mean to the shard.
  void add_shard() const;

  //! Copies what all ranks hold of this rank's shard.
  void recall() const;

  //! Encodes this rank's shard. With feedback it writes what the codes lost to the residual.
  void publish() const;

  //! Decodes all parts of the mean to the gradient. With feedback it writes what this rank's encodings lost to the
  //! residuals.
  void decode() const;

 private:
  using base = cpu_stages<Codec, Element>;
  using base::args_;
  using base::leave_metric;
  using base::rotate_back;
  using base::set_;
  using base::size;
  using base::store_unsent;
  using base::threads_;
  using base::to_own_units;
  using base::with_chunk;
  using base::with_rotated;
  using base::with_values;

  //! Rotations need not be normalized: this takes back by what forward and backward together multiply.
  static constexpr float unit =
    1.0f / static_cast<float>(square_gain<typename Codec::rotator_type>);
  using dither        = typename Codec::dither_type;
  using second_dither = typename second_dither_of<dither>::type;

  using map_type = decltype(make_part_map(std::declval<exchange_args<Codec, Element>>()));

  //! Writes what feedback keeps of values of which `own` was sent.
  void keep_lost(float const* values, float const* own, std::uint32_t count, float* residual) const
  {
    [[maybe_unused]] float const weight = weight_of_kept(args_);
    for (std::uint32_t i = 0; i < count; ++i) {
      float const kept = weighed<Codec>(host_group{}, weight, residual[i]);
      float const lost = host_group::subtract(values[i], own[i]);
      residual[i]      = args_.codec.feedback.after(host_group{}, values[i], lost, kept);
    }
  }

  //! Clears what lies between the codes and the scales of a part; a tile gets its head.
  void clear_rest(map_type const& map, std::uint32_t part, std::uint32_t* words) const
  {
    part_rest const rest = map.rest_of(part);
    std::fill(words + rest.begin, words + rest.end, 0u);
    if constexpr (tiling<Codec>) {
      auto const head = make_head(args_, map, part);
      std::copy_n(head.word, head.words, words - head.words);
    }
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
      for (int i = 0; i < size; ++i) { rows[i] = to_float(from[i]); }
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
      using quantizer   = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      float const scale = chunk_codes<quantizer, size>::template encode<Dither>(
        set_, key, chunk, rows, words + place.word);
      words[map.scale_word(place.index)] = float_bits(scale * share);
    });
  }

  //! Adds `factor` times the decoded chunk of a part to the rows. If the rows are `fresh` it overwrites them.
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
      chunk_codes<quantizer, size>::add(set_, words + place.word, scale, rows, fresh);
    });
  }

  //! Decodes a chunk of a part, with all of its coordinates, times `factor`.
  template <class To>
  void estimate(map_type const& map,
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

  //! Decodes a chunk of the parts of `copies` ranks and adds it up, times `factor`.
  template <class To>
  void mean_of(map_type const& map,
               part_place const& place,
               std::uint64_t chunk,
               std::uint32_t const* words,
               std::uint32_t copies,
               float factor,
               To to) const
  {
    alignas(64) float rows[size]{};
    for (std::uint32_t rank = 0; rank < copies; ++rank) {
      add_estimate(map, place, words + map.begin(rank), factor, rows);
    }
    from_rows(chunk, rows, to);
  }

  //! Adds up what all ranks sent of an owned chunk, and what the owner kept of it.
  void add_ranks(map_type const& map, part_place const& place, float* rows) const;

  //! The chunk's number in the gradient under fixed chunks, otherwise a number that no other chunk has.
  [[nodiscard]] static std::uint64_t chunk_of(map_type const& map, part_place const& place)
  {
    return map.chunk_of(place.part, place.index);
  }

  //! Zero, or NaN where the gradient of a chunk that does not travel was not finite.
  [[nodiscard]] float scale_of_unsent(std::uint64_t chunk) const
  {
    if constexpr (selects<Codec>) {
      using scalar      = typename Codec::norm_scalar;
      auto const agreed = static_cast<scalar const*>(args_.agreed);
      // If the budget pays for nothing, no norm has travelled.
      if (has_agreed(args_)) { return 0.0f * to_float(agreed[chunk]); }
    }
    return 0.0f;
  }

  //! Copies chunks that a boundary cuts from the part of their first rank to the others.
  void share_cut_chunks(map_type const& map) const;

  //! The values of a chunk of the own shard as they are encoded, with zeros where it has none.
  void load_published(chunk_entry const& entry, float (&values)[extent(size)]) const;

  void keep_residual(map_type const& map) const;
  void keep_owner_residual(map_type const& map) const;
};

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
    with_values(chunk, [&](auto from) {
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
    if constexpr (in_metric<Codec>) {
      alignas(64) float values[size];
      from_rows(chunk, rows, +values);
      std::uint64_t const skipped = first - entry.offset;
      multiply_by_scales(set_,
                         values + skipped,
                         args_.metric.scales + first,
                         base::least_scale_of(entry),
                         args_.gradient + (first - begin),
                         last - first);
    } else if (last - first == static_cast<std::uint64_t>(size)) {
      from_rows(chunk, rows, args_.gradient + (first - begin));
    } else {
      Element copy[size];
      from_rows(chunk, rows, +copy);
      std::copy(copy + (first - entry.offset),
                copy + (last - entry.offset),
                args_.gradient + (first - begin));
    }
  });
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::recall() const
{
  Element const* const from = args_.gradient + args_.parts.begin;
  for (std::uint64_t i = 0; i < args_.parts.end - args_.parts.begin; ++i) {
    args_.parts.held[i] = to_float(from[i]);
  }
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::load_published(chunk_entry const& entry,
                                               float (&values)[extent(size)]) const
{
  std::uint64_t const first           = entry.offset - args_.parts.begin;
  [[maybe_unused]] float const weight = weight_of_kept(args_);
  for (std::uint32_t i = 0; i < entry.length; ++i) {
    float const value = to_float(args_.gradient[first + i]);
    if constexpr (codes_differences<Codec>) {
      values[i] = host_group::subtract(value, args_.parts.held[first + i]);
    } else if constexpr (feeds_back<Codec>) {
      float const kept = weighed<Codec>(host_group{}, weight, args_.residual[first + i]);
      values[i]        = args_.codec.feedback.before(host_group{}, value, kept);
    } else {
      values[i] = value;
    }
  }
  std::fill(values + entry.length, values + size, 0.0f);
}

template <class Codec, class Element>
void cpu_parts<Codec, Element>::publish() const
{
  map_type const map       = make_part_map(args_);
  std::uint32_t* const own = args_.parts.gathered + map.begin(args_.rank);
  clear_rest(map, args_.rank, own);
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place    = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    std::uint64_t const chunk = chunk_of(map, place);
    chunk_entry const entry   = args_.table[chunk];
    alignas(64) float values[extent(size)];
    alignas(64) float rows[size];
    load_published(entry, values);
    to_rows(chunk, static_cast<float const*>(values), rows);
    quantize<dither>(map, place, chunk, key_of(args_), rows, 1.0f, own);
    if constexpr (feeds_back<Codec>) {
      if (!is_finite(bits_float(own[map.scale_word(place.index)]))) { return; }
      alignas(64) float sent[size];
      estimate(map, place, chunk, own, 1.0f, +sent);
      float* const residual = args_.residual + (entry.offset - args_.parts.begin);
      keep_lost(values, sent, entry.length, residual);
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
    alignas(64) float now[weighs_kept<Codec> ? size : 1];
    with_values(chunk_of(map, place), this->with_weight(kept, size, now), [&](auto values) {
      to_rows(chunk_of(map, place), values, rows);
    });
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
  // Owners have sent means, but hops have made a sum, and codes of all ranks are to be added.
  bool const sums   = requantizing<Codec> || copying<Codec>;
  float const share = sums ? 1.0f / static_cast<float>(args_.world) : 1.0f;
  // Where all ranks' codes are gathered there is a part of each, and all have the same chunks.
  std::uint32_t const copies = copying<Codec> ? static_cast<std::uint32_t>(args_.world) : 1;
  parallel_for(threads_, std::uint64_t{map.parts()} * copies, [&](std::uint64_t number) {
    auto const part                  = copying<Codec> ? 0u : static_cast<std::uint32_t>(number);
    std::uint32_t const* const words = args_.parts.gathered + map.begin(number);
    for (std::uint32_t index = 0; index < map.chunks_of(part); ++index) {
      if (!is_finite(bits_float(words[map.scale_word(index)]))) { raise_flag(args_); }
    }
  });
  if constexpr ((feeds_back<Codec> || owner_feeds_back<Codec>)&&!publishing<Codec>) {
    if (!step_is_poisoned(args_)) {
      if constexpr (feeds_back<Codec>) { keep_residual(map); }
      if constexpr (owner_feeds_back<Codec> || owner_sends<Codec>) { keep_owner_residual(map); }
    }
  }
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    part_place const place     = find_part(args_, map, chunk);
    std::uint32_t* const words = args_.parts.gathered + map.begin(place.part);
    chunk_entry const entry    = args_.table[chunk];
    Element* const to          = args_.gradient + entry.offset;
    float scale =
      place.level == 0 ? scale_of_unsent(chunk) : bits_float(words[map.scale_word(place.index)]);
    if constexpr (copying<Codec>) {
      for (std::uint32_t rank = 1; rank < copies && place.level > 0; ++rank) {
        scale += bits_float(words[map.begin(rank) + map.scale_word(place.index)]);
      }
    }
    if constexpr (codes_differences<Codec>) {
      // A difference that is not finite leaves what all ranks hold as it was.
      if (!(scale > 0.0f && is_finite(scale))) { return; }
      alignas(64) float added[size];
      estimate(map, place, chunk, words, 1.0f, +added);
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        to[i] = finite_from_float<Element>(host_group::add(to_float(to[i]), added[i]));
      }
      return;
    }
    auto const decode_to = [&](auto whole) {
      if constexpr (copying<Codec>) {
        mean_of(map, place, chunk, words, copies, share, whole);
      } else {
        estimate(map, place, chunk, words, share, whole);
      }
    };
    bool const sent = scale > 0.0f;
    if constexpr (in_metric<Codec>) {
      auto const fill = [this, scale](auto whole) { this->store_unsent(0.0f * scale, whole); };
      leave_metric(chunk, [&](auto whole) { sent ? decode_to(whole) : fill(whole); });
    } else if (!sent) {
      // The chunk has not travelled: zeros, or NaN if a gradient was not finite.
      fill_chunk(to, entry.length, 0.0f * scale);
    } else if (entry.length == size) {
      decode_to(to);
    } else {
      Element copy[size];
      decode_to(+copy);
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
        estimate(map, place, chunk, args_.payload + map.begin(place.part), 1.0f, +own);
        if constexpr (in_metric<Codec>) { to_own_units(entry, own); }
      }
      keep_lost(whole, own, entry.length, residual);
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
    if constexpr (owner_feeds_back<Codec>) {
      float* const kept = args_.parts.owner_residual + index * size;
      from_rows(chunk_of(map, place), rows, kept);
      if constexpr (in_metric<Codec>) {
        chunk_entry const entry = args_.table[chunk_of(map, place)];
        to_own_units(entry, kept);
        std::fill(kept + entry.length, kept + size, 0.0f);
      }
    } else {
      alignas(64) float lost[size];
      from_rows(chunk_of(map, place), rows, +lost);
      chunk_entry const entry = args_.table[chunk_of(map, place)];
      float* const sent       = args_.residual + entry.offset;
      for (std::uint32_t i = 0; i < entry.length; ++i) { sent[i] = sent[i] - lost[i]; }
    }
  });
}

}  // namespace tersum::inline v0::detail
