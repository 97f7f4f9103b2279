// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload rounds of a codec whose ranks own parts, on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/cpu/cpu_part_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/part_items.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/part_stages.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/host_memory.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The payload rounds of a codec whose ranks own parts: two shots, gathered codes.
template <class Codec, class Element>
class cpu_two_shot : cpu_part_chunks<Codec, Element> {
 public:
  using cpu_part_chunks<Codec, Element>::cpu_part_chunks;

  //! Encodes the gradient, for all parts.
  void encode() const { this->encode_parts(make_part_map(args_)); }

  //! Decodes what all ranks sent of this rank's part, adds it up, and encodes the mean.
  void recompress() const;

  //! Decodes all parts of the mean to the gradient. With feedback it writes what this rank's encodings lost to the
  //! residuals.
  void decode() const;

 private:
  using base          = cpu_part_chunks<Codec, Element>;
  using map_type      = typename base::map_type;
  using second_dither = typename second_dither_of<typename base::dither>::type;
  using base::add_estimate;
  using base::args_;
  using base::chunk_of;
  using base::clear_rest;
  using base::from_rows;
  using base::keep_residual;
  using base::set_;
  using base::size;
  using base::threads_;
  using base::to_own_units;

  //! Where an owner keeps what its chunk of this number lost.
  [[nodiscard]] residual_element<Codec>* owner_place(std::uint64_t index) const
  {
    return args_.parts.owner_residual + index * size;
  }

  //! Adds up what all ranks sent of an owned chunk, and what the owner kept of it.
  void add_ranks(map_type const& map, part_place const& place, float* rows) const;

  void keep_owner_residual(map_type const& map) const;
};

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::add_ranks(map_type const& map,
                                             part_place const& place,
                                             float* rows) const
{
  if constexpr (owner_feeds_back<Codec>) {
    auto const* const kept = owner_place(place.index);
    alignas(64) float now[extent(base::kept_room)];
    this->with_values(chunk_of(map, place), this->with_weight(kept, size, now), [&](auto values) {
      this->to_rows(chunk_of(map, place), values, rows);
    });
  }
  for (std::uint64_t rank = 0; rank < map.world; ++rank) {
    bool const fresh = rank == 0 && !owner_feeds_back<Codec>;
    add_estimate(map, place, args_.parts.received + map.begin(rank), 1.0f, rows, fresh);
  }
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::recompress() const
{
  map_type const map       = make_part_map(args_);
  auto const mean          = make_mean_map(args_);
  std::uint32_t* const own = args_.parts.gathered + mean.begin(args_.rank);
  float const share        = 1.0f / static_cast<float>(args_.world);
  dither_key key           = key_of(args_);
  key.rank                 = second_rank;
  if (args_.parts.recompressed.begin == 0) { clear_rest(mean, args_.rank, own); }
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    if (!is_at_hand(args_, place.word)) { return; }
    alignas(64) float rows[size];
    add_ranks(map, place, rows);
    this->template quantize<second_dither>(
      mean, place_of_mean(mean, place), chunk_of(map, place), key, rows, share, own);
  });
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::decode() const
{
  auto const map = make_mean_map(args_);
  // Where all ranks' codes are gathered there is a part of each, and all have the same chunks.
  std::uint32_t const copies = copies_of_mean(args_);
  parallel_for(threads_, std::uint64_t{map.parts()} * copies, [&](std::uint64_t number) {
    auto const part                  = copying<Codec> ? 0u : static_cast<std::uint32_t>(number);
    std::uint32_t const* const words = args_.parts.gathered + map.begin(number);
    for (std::uint32_t index = 0; index < map.chunks_of(part); ++index) {
      if (!is_finite(bits_float(words[map.scale_word(index)]))) { raise_flag(args_); }
    }
  });
  if constexpr ((feeds_back<Codec> || owner_feeds_back<Codec>)&&!publishing<Codec>) {
    if (!step_is_poisoned(args_)) {
      if constexpr (feeds_back<Codec>) { keep_residual(make_part_map(args_)); }
      if constexpr (owner_feeds_back<Codec>) { keep_owner_residual(make_part_map(args_)); }
    }
  }
  parallel_for(threads_, args_.chunks, [&](std::uint64_t number) {
    chunk_in_rows chunk{threads_, set_, args_, map, find_part(args_, map, number), number};
    decode_chunk(chunk);
  });
}

template <class Codec, class Element>
void cpu_two_shot<Codec, Element>::keep_owner_residual(map_type const& map) const
{
  auto const mean          = make_mean_map(args_);
  std::uint32_t* const own = args_.parts.gathered + mean.begin(args_.rank);
  parallel_for(threads_, map.chunks_of(args_.rank), [&](std::uint64_t index) {
    part_place const place = map.of_index(args_.rank, static_cast<std::uint32_t>(index));
    alignas(64) float rows[size];
    add_ranks(map, place, rows);
    add_estimate(mean, place_of_mean(mean, place), own, -static_cast<float>(args_.world), rows);
    std::uint64_t const chunk = chunk_of(map, place);
    alignas(64) float lost[size];
    from_rows(chunk, rows, +lost);
    to_own_units(chunk, lost);
    if constexpr (in_metric<Codec>) {
      std::fill(lost + args_.table[chunk].length, lost + size, 0.0f);
    }
    keep_values(set_, lost, draw_of_kept(args_, chunk, second_rank), owner_place(index), size);
  });
}

}  // namespace tersum::inline v0::detail
