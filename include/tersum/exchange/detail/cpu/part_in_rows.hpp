// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk of parts in the hand of a thread of the CPU, and its codes, whatever the quantizer.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/coder/detail/cpu_scaled_codes.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_metric.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The values of a chunk, which lie as the rotation leaves them. Before any are added there are none.
template <int Size>
struct row_values {
  alignas(64) float rows[extent(Size)];
  bool fresh;

  row_values() : fresh(true) {}
};

//! @brief A chunk in the hand of a thread: what the sentences of `part_stages.hpp` ask of it, to rows of vectors.
//! @tparam Map  Where the parts lie, and of which codes they are.
template <class Codec, class Element, class Map>
class part_in_rows : public chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;

  //! Rotations need not be normalized: this takes back by what forward and backward together multiply.
  static constexpr float unit =
    1.0f / static_cast<float>(square_gain<typename Codec::rotator_type>);
  static constexpr bool rotates = Codec::rotates_chunks || Codec::rotates_in_memory;

 public:
  using base::args;
  using base::entry;
  using base::number;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::kept_element;
  using typename base::math;
  using values      = row_values<size>;
  using dither_type = typename Codec::dither_type;

  Map map;
  part_place place;

  part_in_rows(instruction_set instructions,
               exchange_args<Codec, Element> const& arguments,
               Map const& parts,
               part_place const& at,
               std::uint64_t chunk)
    : base(instructions, arguments, chunk), map(parts), place(at)
  {
  }

  [[nodiscard]] bool travels() const { return place.level > 0; }
  [[nodiscard]] bool stays() const { return selects<Codec> && place.level == 0; }
  //! Memory as items see it.
  [[nodiscard]] host_memory memory() const { return {}; }

  //! A part of an array of parts.
  [[nodiscard]] std::uint32_t* part_of(std::uint32_t* parts, std::uint64_t part) const
  {
    return parts + map.begin(part);
  }

  //! What that rank sent of this rank's part. Prefetches the scales of the next chunks, which lie before this one's.
  [[nodiscard]] std::uint32_t const* sent_by(std::uint32_t rank) const
  {
    auto* const part = args.parts.received + map.received(rank, args.rank);
    fetch_beyond<false, std::uintptr_t{0} - 64>(part + map.scale_word(place.index));
    return part;
  }

  //! The same chunk in parts of the mean.
  [[nodiscard]] auto const& of_mean() const { return *this; }
  [[nodiscard]] auto of_mean() const requires ways_differ<Codec>
  {
    auto const parts = make_mean_map(args);
    return part_in_rows<Codec, Element, mean_map<Codec>>{
      set, args, parts, place_of_mean(parts, place), number()};
  }

  //! The scale of this chunk in a part.
  [[nodiscard]] float scale_in(std::uint32_t const* part) const
  {
    return bits_float(part[map.scale_word(place.index)]);
  }

  //! `add` to values that nothing was added to. Rotations back multiply at last.
  void begin(std::uint32_t const* part, float factor, values& v) const { add(part, factor, v); }
  static constexpr float early = 1.0f;

  //! Adds `factor` times the decoded chunk of a part.
  void add(std::uint32_t const* part, float factor, values& v) const
  {
    if (place.level == 0) { return; }
    float const scale = scale_in(part) * factor;
    at_level_of(map, args.codec, place.level, [&](auto const& codec) {
      using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      chunk_codes<quantizer, size>::add(set, part + place.word, scale, v.rows, v.fresh);
    });
    v.fresh = false;
  }

  //! Begins with what the owner kept of the chunk.
  void begin_with_kept(values&) const {}
  void begin_with_kept(values& v) const requires owner_feeds_back<Codec>
  {
    alignas(64) float room[extent(base::kept_room)];
    in_units(*this, this->with_weight(owner_kept(), size, room), [&](auto from) {
      to_rows(from, v.rows);
    });
    v.fresh = false;
  }

  //! Encodes values of the chunk in the units of the metric to a part: in place where no rotation and no conversion makes rows of them.
  template <class From>
  void encode_from(From from, std::uint32_t* part) const
  {
    if constexpr (std::is_same_v<From, float const*> && !rotates) {
      quantize<dither_type>(from, key_of(args), 1.0f, part);
    } else {
      alignas(64) array rows;
      to_rows(from, rows);
      quantize<dither_type>(rows, key_of(args), 1.0f, part);
    }
  }

  //! Encodes values, dithered by `key`. The chunk's scale is multiplied by `share`.
  template <class Dither>
  void encode(values const& v, dither_key const& key, float share, std::uint32_t* part) const
  {
    quantize<Dither>(v.rows, key, share, part);
  }

  //! Decoded values to the gradient: back to its basis and its units, and stored. Where the chunk has not travelled zeros take
  //! their place, or NaN if a gradient was not finite.
  //! @param scale  By what the values were multiplied, in all.
  void give(float scale, values& v) const
  {
    leave_metric(*this, [&](auto to) {
      scale > 0.0f ? from_rows(v.rows, to) : this->store_unsent(0.0f * scale, to);
    });
  }

  //! Decoded differences are added to what all ranks hold. One that is not finite leaves it as it was.
  void give(float scale, values& v) const requires codes_differences<Codec>
  {
    if (!(scale > 0.0f && is_finite(scale))) { return; }
    alignas(64) array added;
    from_rows(v.rows, +added);
    leave_metric_in_place(*this, added);
    Element* const to = this->gradient();
    for (int i = 0; i < this->length(); ++i) {
      to[i] = finite_from_float<Element>(math::add(to_float(to[i]), added[i]));
    }
  }

  //! Decoded values to this rank's shard: those of the chunk that lie in it. If they are not finite it sets the flag.
  void give_to_shard(bool finite, values& v) const
  {
    if (!finite) { raise_flag(args); }
    std::uint64_t const begin = std::max(entry.offset, args.parts.begin);
    std::uint64_t const end   = std::min(entry.offset + entry.length, args.parts.end);
    Element* const to         = args.gradient + (begin - args.parts.begin);
    std::uint64_t const skip  = begin - entry.offset;
    leave_metric(*this, skip, end - begin, to, [&](auto all) { from_rows(v.rows, all); });
  }

  //! Writes what feedback keeps of values of which the codes of a part have been sent. Of a chunk that is not finite it keeps what it had: no
  //! rank of a sharded exchange knows of values in all shards, and others may have lost them.
  void keep_lost(std::uint32_t const* part, float const* given, kept_element* to) const
  {
    alignas(64) array sent{};
    if (travels()) {
      if (!is_finite(scale_in(part))) { return; }
      values v;
      add(part, 1.0f, v);
      from_rows(v.rows, +sent);
      to_own_units(*this, sent);
    }
    this->keep(given, -1.0f, sent, to);
  }

  //! Writes what the owner keeps of a chunk of its part, of which so much was lost.
  void keep_owned(values& v) const
  {
    alignas(64) array lost;
    from_rows(v.rows, +lost);
    to_own_units(*this, lost);
    kept_at<kept_element> const at{owner_kept(), draw_of_kept(args, number(), second_rank)};
    static_cast<void>(convert_values(set, +lost, at, 1.0f, std::size_t{size}));
  }

 private:
  //! Where the owner keeps what its chunk lost.
  [[nodiscard]] kept_element* owner_kept() const
  {
    return args.parts.owner_residual + static_cast<std::uint64_t>(place.index) * size;
  }

  //! Brings values into the form in which they are added and encoded: rotated and in rows, or, without a rotation, as they lie in
  //! the gradient.
  template <class From>
  void to_rows(From from, float* rows) const
  {
    if constexpr (rotates) {
      this->rotated(from, [&](auto rotated) {
        rotate_to_rows<size, Codec::rotates_chunks>(
          set, args.header->sign_key, number(), rotated, rows);
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
  void from_rows(float* rows, To to) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) array x;
      rotate_from_rows<size, false>(set, args.header->sign_key, number(), 1.0f, rows, +x);
      this->rotate_back(x);
      for (float& value : x) { value = value * unit; }
      store_whole(set, x, to, size);
    } else if constexpr (Codec::rotates_chunks) {
      rotate_from_rows<size>(set, args.header->sign_key, number(), unit, rows, to);
    } else {
      store_whole(set, rows, to, size);
    }
  }

  template <class Dither>
  void quantize(float const* rows, dither_key const& key, float share, std::uint32_t* part) const
  {
    at_level_of(map, args.codec, place.level, [&](auto const& codec) {
      using quantizer   = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      float const scale = chunk_codes<quantizer, size>::template encode<Dither>(
        set, key, number(), rows, part + place.word);
      part[map.scale_word(place.index)] = float_bits(scale * share);
    });
  }
};

}  // namespace tersum::inline v0::detail
