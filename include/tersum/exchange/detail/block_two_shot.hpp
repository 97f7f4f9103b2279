// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The payload rounds of a two-shot codec: kernel bodies.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_metric.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_parts.hpp>
#include <tersum/exchange/detail/block_rotation.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/part_stages.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int part_threads = tuning_of<Context>.cuda.part_threads;

//! @brief The map of all parts that this rank sends, or of the parts of the mean.
//! @{
template <class Codec, class Element>
[[nodiscard]] TERSUM_BODY auto map_of_parts(exchange_args<Codec, Element> const& args,
                                            std::uint32_t const*)
{
  return make_part_map(args);
}
template <ways_differ Codec, class Element>
[[nodiscard]] TERSUM_BODY part_map map_of_parts(exchange_args<Codec, Element> const& args,
                                                std::uint32_t const* parts)
{
  // Parts of the mean never lie in the place of those that are sent.
  return parts == args.parts.gathered ? part_map{make_mean_map(args)} : make_part_map(args);
}
//! @}

//! @brief Clears the words between codes and scales: of all parts that this rank sends, or of its own part of the mean.
template <class Codec, class Element, class Context>
TERSUM_BODY void clear_parts(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint32_t* parts,
                             std::uint32_t first)
{
  auto const map             = map_of_parts(args, parts);
  std::uint32_t const part   = first + ctx.block_rank();
  std::uint32_t* const words = parts + map.begin(part);
  part_rest const rest       = map.rest_of(part);
  for (std::uint64_t at = rest.begin + ctx.thread_rank(); at < rest.end;
       at += part_threads<Context>) {
    ctx.store(words + at, 0u);
  }
}

//! @brief Encodes the gradient, for all parts, in one pass.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void encode_parts(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              std::uint64_t first_chunk)
{
  using chunk = chunk_in_lanes<Edge, Edge, Codec, Element, Context>;
  in_found_chunk<chunk, true>(ctx, args, make_part_map(args), first_chunk, [&](chunk& own) {
    float v[32];
    load_signed<Edge>(ctx, args, own.mine, own.storage, v);
    if constexpr (chunk::rotates) {
      chunk::hadamard::to_wire(ctx, v, own.storage, own.mine.thread, own.mine.first);
    }
    own.template encode<typename Codec::dither_type>(
      v, key_of(args), 1.0f, own.part_of(args.payload, own.place.part));
  });
}

//! @brief Decodes what all ranks sent of this rank's part, adds it up, and encodes the mean: reads a part from each rank,
//! and writes one. If only a range of the part is to be done, it takes the chunks that begin there.
//! @tparam Chunk  A `chunk_in_lanes`, or what derives from it and knows of another `sent_by`.
template <class Chunk, class Codec, class Element, class Context>
TERSUM_BODY void recompress_owned(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  Chunk own{ctx, args};
  own.find_owned();
  if (all_idle(ctx, own.mine)) { return; }
  own.locate();
  float v[32];
  add_ranks(own, v);
  dither_key key   = key_of(args);
  key.rank         = second_rank;
  auto const& mean = own.of_mean();
  mean.template encode<typename second_dither_of<typename Codec::dither_type>::type>(
    v, key, args.parts.share, mean.part_of(args.parts.gathered, args.rank));
}

//! @brief The same of the parts that this rank has received.
//! @tparam InRows  Of the scales of a metric, as `load_scales` has it.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void recompress_part(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  recompress_owned<chunk_in_lanes<true, InRows, Codec, Element, Context>>(ctx, args);
}

//! @brief Sets the flag of the exchange if a chunk of the mean is not finite.
template <class Codec, class Element, class Context>
TERSUM_BODY void inspect_chunk(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t chunk)
{
  if (chunk >= args.chunks) { return; }
  auto const map         = make_mean_map(args);
  part_place const place = args.selection.find_in(map, chunk);
  if (place.level == 0) { return; }
  auto const parts = static_cast<unsigned>(parts_of_mean(args));
  for (unsigned i = 0; i < parts; ++i) {
    std::uint32_t const* const part = args.parts.gathered + map.begin(place.part + i);
    float const scale = Context::from_bits(ctx.load(part + map.scale_word(place.index)));
    if (!is_finite(scale)) { raise_flag(args); }
  }
}

//! @brief `inspect_chunk` of every chunk. A thread has one.
template <class Codec, class Element, class Context>
TERSUM_BODY void inspect_parts(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  inspect_chunk(ctx,
                args,
                static_cast<std::uint64_t>(ctx.block_rank()) * part_threads<Context> +
                  ctx.thread_rank());
}

//! @brief Writes what this rank's encoding lost to its residual.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void keep_residual(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using chunk = chunk_in_lanes<Edge, Edge, Codec, Element, Context>;
  in_found_chunk<chunk>(ctx, args, make_part_map(args), first_chunk, [&](chunk& own) {
    if (step_is_poisoned(args)) { return; }
    float v[32]                     = {};
    std::uint32_t const* const part = own.part_of(args.payload, own.place.part);
    own.begin(part, own.early, v);
    own.rotate_back(v, own.late);
    multiply_by_scales<Edge>(ctx, args, own.mine, v);
    float given[32];
    load_coordinates<Edge>(ctx, args, own.mine, given);
    // No rank of a sharded exchange knows of values in all shards that are not finite, and others may have lost them.
    bool const encoded = own.mine.active && own.place.level > 0;
    bool const keeps   = !encoded || is_finite(own.scale_in(part));
    keep_lost<Edge>(
      ctx,
      args,
      own.mine,
      given,
      [&](int i, float& value) {
        if (own.place.level > 0) { value = Context::subtract(value, v[i]); }
      },
      keeps);
  });
}

//! @brief Writes what the encoding of the mean lost to the owner's residual.
template <bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void keep_owner_residual(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  chunk_in_lanes<true, InRows, Codec, Element, Context> own{ctx, args};
  own.find_owned();
  if (all_idle(ctx, own.mine) || step_is_poisoned(args)) { return; }
  own.locate();
  float v[32];
  add_ranks(own, v);
  float const back = -static_cast<float>(args.world);
  auto const& mean = own.of_mean();
  mean.add(mean.part_of(args.parts.gathered, args.rank), back, v);
  own.keep_owned(v);
}

//! @brief `decode_chunk` of the chunks of the gradient, in one pass.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_parts(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              std::uint64_t first_chunk)
{
  auto const map = make_mean_map(args);
  using chunk =
    chunk_in_lanes<Edge, Edge, Codec, Element, Context, std::remove_const_t<decltype(map)>>;
  in_found_chunk<chunk>(ctx, args, map, first_chunk, [](chunk& own) { decode_chunk(own); });
}

}  // namespace tersum::inline v0::detail
