// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of codecs whose ranks own parts or shards, on the CPU: two shots, gathered codes, shards of a mean and of values.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/part_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/part_stages.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! Calls body(chunk) for the chunks of the gradient.
template <class Codec, class Element, class Map, class Body>
void each_chunk(cpu_work<Codec, Element> const& work, Map const& map, Body const& body)
{
  auto const& args = work.args;
  parallel_for(work.threads, args.chunks, [&](std::uint64_t number) {
    part_in_rows<Codec, Element, Map> chunk{
      work.instructions, args, map, args.selection.find_in(map, number), number};
    body(chunk);
  });
}

//! Calls body(chunk) for the chunks that this rank owns. Their number is that in the gradient under fixed chunks, otherwise one that no
//! other chunk has.
template <class Codec, class Element, class Map, class Body>
void each_owned(cpu_work<Codec, Element> const& work, Map const& map, Body const& body)
{
  auto const& args = work.args;
  parallel_for(work.threads, map.chunks_of(args.rank), [&](std::uint64_t number) {
    auto const index = static_cast<std::uint32_t>(number);
    body(part_in_rows<Codec, Element, Map>{work.instructions,
                                           args,
                                           map,
                                           map.of_index(args.rank, index),
                                           map.chunk_of(args.rank, index)});
  });
}

//! Clears what lies between the codes and the scales of a part.
template <class Map>
void clear_rest(Map const& map, std::uint32_t part, std::uint32_t* words)
{
  part_rest const rest = map.rest_of(part);
  std::fill(words + rest.begin, words + rest.end, 0u);
}

//! Writes what this rank's encodings lost to the residuals; what is published has done so.
//! @{
template <class Codec, class Element, class Map>
void keep_residual(cpu_work<Codec, Element> const&, Map const&)
{
}
template <class Codec, class Element, class Map>
requires(feeds_back<Codec> &&
         !publishing<Codec>) void keep_residual(cpu_work<Codec, Element> const& work,
                                                Map const& map)
{
  each_chunk(work, map, [&](auto const& chunk) {
    chunk.read([&](float const* given) {
      chunk.keep_lost(chunk.part_of(work.args.payload, chunk.place.part), given, chunk.kept());
    });
  });
}
//! @}

//! Copies chunks that a boundary cuts from the part of their first rank to the others.
template <class Map>
void share_cut_chunks(Map const& map, std::uint32_t* payload)
{
  for (std::uint32_t part = 0; part < map.parts(); ++part) {
    if (map.chunks_of(part) == 0) { continue; }
    auto const chunk      = static_cast<std::uint32_t>(map.chunk_of(part, 0));
    part_place const from = map.of_chunk(chunk);
    if (from.part == part) { continue; }
    std::uint32_t* const to            = payload + map.begin(part);
    std::uint32_t const* const encoded = payload + map.begin(from.part);
    std::copy_n(encoded + from.word, map.chunk_words, to + map.of_index(part, 0).word);
    to[map.scale_word(0)] = encoded[map.scale_word(from.index)];
  }
}

//! @name Stages of codecs whose ranks own parts or shards
//! @{

//! Encodes the gradient, for all parts.
template <has_parts Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  auto const map               = make_part_map(work.args);
  std::uint32_t* const payload = work.args.payload;
  parallel_for(work.threads, map.parts(), [&](std::uint64_t part) {
    clear_rest(map, static_cast<std::uint32_t>(part), payload + map.begin(part));
  });
  each_chunk(work, map, [&](auto const& chunk) {
    if (!chunk.travels()) { return; }
    chunk.read_in_units(
      [&](auto from) { chunk.encode_from(from, chunk.part_of(payload, chunk.place.part)); });
  });
  if constexpr (sharding<Codec>) {
    share_cut_chunks(map, payload);
    keep_residual(work, map);
  }
  return {};
}

//! Encodes this rank's shard. With feedback it writes what the codes lost to the residual.
template <publishing Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  auto const& args         = work.args;
  auto const map           = make_part_map(args);
  std::uint32_t* const own = args.parts.gathered + map.begin(args.rank);
  clear_rest(map, args.rank, own);
  each_owned(work, map, [&](auto const& chunk) {
    std::uint64_t const first = chunk.entry.offset - args.parts.begin;
    auto* const kept          = args.residual + (feeds_back<Codec> ? first : 0);
    chunk.read(args.gradient + first, kept, [&](auto const* values) {
      in_units(chunk, values, [&](auto from) { chunk.encode_from(from, own); });
      if constexpr (feeds_back<Codec>) { chunk.keep_lost(own, values, kept); }
    });
  });
  return {};
}

//! Decodes what all ranks sent of this rank's part, adds it up, and encodes the mean.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::recompress, cpu_work<Codec, Element> const& work)
{
  auto const& args = work.args;
  auto const mean  = make_mean_map(args);
  clear_rest(mean, args.rank, args.parts.gathered + mean.begin(args.rank));
  each_owned(work, make_part_map(args), [](auto const& chunk) { recompress_chunk(chunk); });
  return {};
}

//! Decodes what all ranks sent of this rank's part, adds it up, and writes the mean to the shard.
template <has_parts Codec, class Element>
requires sharding<Codec>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  each_owned(work, make_part_map(work.args), [&](auto const& chunk) { add_chunk_of_shard(chunk); });
  return {};
}

//! Decodes all parts of the mean to the gradient. With feedback it writes what encodings lost to the residuals.
template <has_parts Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  auto const& args = work.args;
  auto const map   = make_mean_map(args);
  // Where all ranks' codes are gathered there is a part of each, and all have the same chunks.
  auto const parts = map.parts() * static_cast<std::uint64_t>(parts_of_mean(args));
  parallel_for(work.threads, parts, [&](std::uint64_t number) {
    auto const part                  = copying<Codec> ? 0u : static_cast<std::uint32_t>(number);
    std::uint32_t const* const words = args.parts.gathered + map.begin(number);
    for (std::uint32_t index = 0; index < map.chunks_of(part); ++index) {
      if (!is_finite(bits_float(words[map.scale_word(index)]))) { raise_flag(args); }
    }
  });
  if (!step_is_poisoned(args)) {
    keep_residual(work, make_part_map(args));
    if constexpr (owner_feeds_back<Codec>) {
      each_owned(work, make_part_map(args), [](auto const& chunk) { keep_lost_of_mean(chunk); });
    }
  }
  each_chunk(work, map, [&](auto& chunk) { decode_chunk(chunk); });
  return {};
}
//! @}

}  // namespace tersum::inline v0::detail
