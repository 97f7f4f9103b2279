// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! TopK: packs chosen coordinates as index and value, and adds up what all ranks sent. Kernel bodies; a thread has one
//! coordinate.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int threads_of_coordinates = tuning_of<Context>.cuda.coordinate_threads;

//! @brief One rank's part of the gathered payload.
struct coordinate_part {
  std::uint32_t* index;
  half* value;
};

template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE coordinate_part part_of(exchange_args<Codec, Element> const& args,
                                                    std::uint64_t rank)
{
  std::uint64_t const chosen   = args.selection.rule.capacity;
  std::uint32_t* const indices = args.payload + rank * (chosen + chosen / 2);
  return {indices, reinterpret_cast<half*>(indices + chosen)};
}

template <class Context>
[[nodiscard]] TERSUM_BODY std::uint64_t own_coordinate(Context const& ctx)
{
  return static_cast<std::uint64_t>(ctx.block_rank()) * threads_of_coordinates<Context> +
         ctx.thread_rank();
}

//! @brief Writes a coordinate to its place in this rank's part.
template <class Codec, class Element, class Context>
TERSUM_BODY void place_coordinate(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t i,
                                  std::uint32_t place,
                                  half value)
{
  coordinate_part const part = part_of(args, args.rank);
  ctx.store(part.index + (place >> place_shift), static_cast<std::uint32_t>(i));
  ctx.store(part.value + (place >> place_shift), value);
}

//! @brief Writes the chosen coordinates to this rank's part, in ascending order. With feedback it keeps the others.
//! @{
template <class Codec, class Element, class Context>
TERSUM_BODY void send_coordinates(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const i = own_coordinate(ctx);
  if (i >= args.chunks) { return; }
  std::uint32_t const place = ctx.load(args.selection.places + i);
  if (place == 0) { return; }
  float const value = Context::value(ctx.load(args.gradient + i));
  place_coordinate(ctx, args, i, place, Context::template element<half>(value));
}

template <class Codec, class Element, class Context>
requires feeds_back<Codec> TERSUM_BODY void send_coordinates(
  Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const i = own_coordinate(ctx);
  if (i >= args.chunks) { return; }
  context_arithmetic<Context> const math{};
  std::uint32_t const place = ctx.load(args.selection.places + i);
  float const own           = Context::value(ctx.load(args.gradient + i));
  float const raw           = Context::value(ctx.load(args.residual + i));
  float const kept          = weighed<Codec>(math, weight_of_kept(args), raw);
  float const value         = args.codec.feedback.before(math, own, kept);
  bool const sent = place != 0, sendable = is_sendable<half>(value);
  half const rounded =
    Context::template finite_element<half>(sendable ? value : Context::from_bits(0x7fffffffu));
  if (sent) { place_coordinate(ctx, args, i, place, rounded); }
  float const lost         = sent ? Context::subtract(value, Context::value(rounded)) : value;
  float const rest         = args.codec.feedback.after(math, value, lost, kept);
  bool const known         = has_adds_lost<typename Codec::feedback_type> || is_finite(rest);
  std::uint32_t const draw = draw_of_kept(args, i, args.rank);
  ctx.store(args.residual + i,
            kept_value<residual_element<Codec>>(sendable && known ? rest : raw, draw));
}
//! @}

//! @brief Clears the sums, which lie where the places of coordinates were.
template <class Codec, class Element, class Context>
TERSUM_BODY void clear_coordinates(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const i = own_coordinate(ctx);
  if (i < args.chunks) { ctx.store(args.selection.places + i, 0u); }
}

//! @brief Adds one rank's part. Its indices differ, so no two threads meet.
template <class Codec, class Element, class Context>
TERSUM_BODY void add_coordinates(Context const& ctx,
                                 exchange_args<Codec, Element> const& args,
                                 std::uint64_t rank)
{
  std::uint64_t const k = own_coordinate(ctx);
  if (k >= args.selection.rule.capacity) { return; }
  coordinate_part const part = part_of(args, rank);
  float* const sums          = reinterpret_cast<float*>(args.selection.places);
  std::uint32_t const i      = ctx.load(part.index + k);
  if (i >= args.chunks) { return; }  // an index that no rank of this plan sends
  ctx.store(sums + i, Context::add(ctx.load(sums + i), Context::value(ctx.load(part.value + k))));
}

//! @brief Makes the mean of the sums, and sets the flag if a value is not finite.
template <class Codec, class Element, class Context>
TERSUM_BODY void receive_coordinates(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const i = own_coordinate(ctx);
  if (i >= args.chunks) { return; }
  float const sum   = ctx.load(reinterpret_cast<float const*>(args.selection.places) + i);
  float const share = Context::divide_moderate(1.0f, static_cast<float>(args.world));
  if (!is_finite(sum)) { raise_flag(args); }
  ctx.store(args.gradient + i, Context::template element<Element>(Context::multiply(sum, share)));
}

}  // namespace tersum::inline v0::detail
