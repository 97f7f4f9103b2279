// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload round of a codec whose ranks get shards of the mean, on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_part_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The payload round of a codec whose ranks get shards of the mean.
template <class Codec, class Element>
class cpu_shards : cpu_part_chunks<Codec, Element> {
 public:
  using cpu_part_chunks<Codec, Element>::cpu_part_chunks;

  //! Encodes the gradient, for all parts. With feedback it writes what the codes lost to the residual.
  void encode() const
  {
    map_type const map = make_part_map(args_);
    this->encode_parts(map);
    share_cut_chunks(map);
    if constexpr (feeds_back<Codec>) { this->keep_residual(map); }
  }

  //! Decodes what all ranks sent of this rank's part, adds it up, and writes the mean to the shard.
  void add_shard() const;

 private:
  using base     = cpu_part_chunks<Codec, Element>;
  using map_type = typename base::map_type;
  using base::add_estimate;
  using base::args_;
  using base::chunk_of;
  using base::from_rows;
  using base::set_;
  using base::size;
  using base::threads_;

  //! Copies chunks that a boundary cuts from the part of their first rank to the others.
  void share_cut_chunks(map_type const& map) const;
};

template <class Codec, class Element>
void cpu_shards<Codec, Element>::share_cut_chunks(map_type const& map) const
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
void cpu_shards<Codec, Element>::add_shard() const
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
                         base::least_scale_of(args_.metric.scales + entry.offset, entry.length),
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

}  // namespace tersum::inline v0::detail
