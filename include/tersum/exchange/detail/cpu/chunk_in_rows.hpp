// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk of parts in the hand of a thread of the CPU.

#pragma once

#include <tersum/block/group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_part_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/execute/detail/host_memory.hpp>
#include <tersum/execute/instruction_set.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A chunk in the hand of a thread: what the sentences of `part_stages.hpp` ask of it, to rows of vectors.
//! @tparam Map  Where the parts lie, and of which codes they are.
template <class Codec, class Element, class Map>
class chunk_in_rows : cpu_part_chunks<Codec, Element> {
  using base = cpu_part_chunks<Codec, Element>;
  using base::set_;
  using base::size;

 public:
  using math = host_group;

  //! The values of the chunk, which lie as the rotation leaves them. Before any are added there are none.
  struct values {
    alignas(64) float rows[extent(size)];
    bool fresh;

    values() : fresh(true) {}
  };

  exchange_args<Codec, Element> const& args;
  Map const& map;
  part_place place;

  chunk_in_rows(int threads,
                instruction_set set,
                exchange_args<Codec, Element> const& arguments,
                Map const& parts,
                part_place const& at,
                std::uint64_t number)
    : base(threads, set, arguments), args(arguments), map(parts), place(at), number_(number)
  {
  }

  //! The chunk's number in the gradient.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool travels() const { return place.level > 0; }
  [[nodiscard]] bool stays() const { return selects<Codec> && place.level == 0; }
  //! Memory as items see it.
  [[nodiscard]] host_memory memory() const { return {}; }

  //! A part of an array of parts.
  [[nodiscard]] std::uint32_t* part_of(std::uint32_t* parts, std::uint64_t part) const
  {
    return parts + map.begin(part);
  }

  //! The scale of this chunk in a part.
  [[nodiscard]] float scale_in(std::uint32_t const* part) const
  {
    return bits_float(part[map.scale_word(place.index)]);
  }

  //! Adds `factor` times the decoded chunk of a part.
  void add(std::uint32_t const* part, float factor, values& v) const
  {
    if (place.level == 0) { return; }
    this->add_estimate(map, place, part, factor, v.rows, v.fresh);
    v.fresh = false;
  }

  //! Decoded values to the gradient: back to its basis and its units, and stored. Where the chunk has not travelled zeros take
  //! their place, or NaN if a gradient was not finite.
  //! @param scale  By what the values were multiplied, in all.
  void give(float scale, values& v) const
  {
    if constexpr (codes_differences<Codec>) {
      // A difference that is not finite leaves what all ranks hold as it was.
      if (scale > 0.0f && is_finite(scale)) { add_to_held(v); }
    } else {
      this->leave_metric(number_, [&](auto to) {
        scale > 0.0f ? this->from_rows(number_, v.rows, to) : this->store_unsent(0.0f * scale, to);
      });
    }
  }

 private:
  //! Adds decoded differences to what all ranks hold.
  void add_to_held(values& v) const
  {
    alignas(64) float added[extent(size)];
    this->from_rows(number_, v.rows, +added);
    this->leave_metric_in_place(number_, added);
    Element* const to = args.gradient + args.table[number_].offset;
    for (std::uint32_t i = 0; i < args.table[number_].length; ++i) {
      to[i] = finite_from_float<Element>(host_group::add(to_float(to[i]), added[i]));
    }
  }

  std::uint64_t number_;
};

template <class Codec, class Element, class Map>
chunk_in_rows(int,
              instruction_set,
              exchange_args<Codec, Element> const&,
              Map const&,
              part_place const&,
              std::uint64_t) -> chunk_in_rows<Codec, Element, Map>;

}  // namespace tersum::inline v0::detail
