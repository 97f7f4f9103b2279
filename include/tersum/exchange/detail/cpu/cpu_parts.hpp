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

  //! Decodes all parts of the mean to the gradient. With feedback it writes what this rank's encodings lost to the
  //! residuals.
  void decode() const;

 private:
  using base = cpu_stages<Codec, Element>;
  using base::args_;
  using base::rotate_back;
  using base::set_;
  using base::size;
  using base::threads_;
  using base::with_chunk;
  using base::with_rotated;

  //! Rotations need not be normalized: this takes back by what forward and backward together multiply.
  static constexpr float unit =
    1.0f / static_cast<float>(square_gain<typename Codec::rotator_type>);
  using dither        = typename Codec::dither_type;
  using second_dither = typename second_dither_of<dither>::type;

  using map_type = decltype(make_part_map(std::declval<exchange_args<Codec, Element>>()));

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
  void to_rows(std::uint64_t chunk, From const* from, float* rows) const
  {
    if constexpr (Codec::rotates_chunks || Codec::rotates_in_memory) {
      with_rotated(chunk, from, [&](auto const* rotated) {
        rotate_to_rows<size, Codec::rotates_chunks>(
          set_, args_.header->sign_key, chunk, rotated, rows);
      });
    } else {
      for (int i = 0; i < size; ++i) { rows[i] = to_float(from[i]); }
    }
  }

  //! The inverse of that. Overwrites the rows.
  template <class To>
  void from_rows(std::uint64_t chunk, float* rows, To* to) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) float x[size];
      rotate_from_rows<size, false>(set_, args_.header->sign_key, chunk, 1.0f, rows, x);
      rotate_back(chunk, x);
      for (int i = 0; i < size; ++i) { to[i] = finite_from_float<To>(x[i] * unit); }
    } else if constexpr (Codec::rotates_chunks) {
      rotate_from_rows<size>(set_, args_.header->sign_key, chunk, unit, rows, to);
    } else {
      for (int i = 0; i < size; ++i) { to[i] = finite_from_float<To>(rows[i]); }
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
                To* to) const
  {
    alignas(64) float rows[size];
    add_estimate(map, place, words, factor, rows, true);
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

  void keep_residual(map_type const& map) const;
  void keep_owner_residual(map_type const& map) const;
};

}  // namespace tersum::inline v0::detail

#include <tersum/exchange/detail/cpu/cpu_parts.ipp>
