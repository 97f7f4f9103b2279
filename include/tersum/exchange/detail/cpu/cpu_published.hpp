// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload round of a codec whose ranks publish shards of values, on the CPU.

#pragma once

#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_part_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The payload round of a codec whose ranks publish shards of values.
template <class Codec, class Element>
class cpu_published : cpu_part_chunks<Codec, Element> {
 public:
  using cpu_part_chunks<Codec, Element>::cpu_part_chunks;

  //! Copies what all ranks hold of this rank's shard.
  void recall() const;

  //! Encodes this rank's shard. With feedback it writes what the codes lost to the residual.
  void publish() const;

 private:
  using base     = cpu_part_chunks<Codec, Element>;
  using map_type = typename base::map_type;
  using dither   = typename base::dither;
  using base::args_;
  using base::chunk_of;
  using base::clear_rest;
  using base::estimate;
  using base::keep_lost;
  using base::size;
  using base::threads_;

  //! The values of a chunk of the own shard as they are encoded, with zeros where it has none.
  //! @param kept  What feedback keeps of it.
  void load_published(chunk_entry const& entry,
                      residual_element<Codec> const* kept,
                      float (&values)[extent(size)]) const;

  //! Where feedback keeps what a chunk of the own shard lost, or null.
  [[nodiscard]] residual_element<Codec>* published_place(
    [[maybe_unused]] part_place const& place, [[maybe_unused]] chunk_entry const& entry) const
  {
    if constexpr (!feeds_back<Codec>) {
      return nullptr;
    } else {
      return args_.residual + (entry.offset - args_.parts.begin);
    }
  }
};

template <class Codec, class Element>
void cpu_published<Codec, Element>::recall() const
{
  Element const* const from = args_.gradient + args_.parts.begin;
  for (std::uint64_t i = 0; i < args_.parts.end - args_.parts.begin; ++i) {
    args_.parts.held[i] = to_float(from[i]);
  }
}

template <class Codec, class Element>
void cpu_published<Codec, Element>::load_published(
  chunk_entry const& entry,
  [[maybe_unused]] residual_element<Codec> const* kept,
  float (&values)[extent(size)]) const
{
  std::uint64_t const first           = entry.offset - args_.parts.begin;
  [[maybe_unused]] float const weight = weight_of_kept(args_);
  for (std::uint32_t i = 0; i < entry.length; ++i) {
    float const value = to_float(args_.gradient[first + i]);
    if constexpr (codes_differences<Codec>) {
      values[i] = host_group::subtract(value, args_.parts.held[first + i]);
    } else if constexpr (feeds_back<Codec>) {
      float const weighed_one = weighed<Codec>(host_group{}, weight, to_float(kept[i]));
      values[i]               = args_.codec.feedback.before(host_group{}, value, weighed_one);
    } else {
      values[i] = value;
    }
  }
  std::fill(values + entry.length, values + size, 0.0f);
}

template <class Codec, class Element>
void cpu_published<Codec, Element>::publish() const
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
    auto* const residual = published_place(place, entry);
    load_published(entry, residual, values);
    this->with_values(chunk, static_cast<float const*>(values), [&](auto from) {
      this->to_rows(chunk, from, rows);
    });
    this->template quantize<dither>(map, place, chunk, key_of(args_), rows, 1.0f, own);
    if constexpr (feeds_back<Codec>) {
      if (!is_finite(bits_float(own[map.scale_word(place.index)]))) { return; }
      alignas(64) float sent[size];
      estimate(map, place, chunk, own, 1.0f, +sent);
      this->to_own_units(chunk, sent);
      keep_lost(chunk, values, sent, entry.length, residual);
    }
  });
}

}  // namespace tersum::inline v0::detail
