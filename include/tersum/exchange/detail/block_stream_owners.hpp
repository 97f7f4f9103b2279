// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What owners of chunks of an `entropy_two_shot_codec` keep of their encoding: kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_kept.hpp>
#include <tersum/exchange/detail/block_stream_kept.hpp>
#include <tersum/exchange/detail/block_streams.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Adds to sums of received parts, which are shares of the mean, what their owner kept of the last sum. A thread has four
//! values.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void add_kept_by_owner(Context const& ctx,
                                   exchange_args<Codec, Element> const& args,
                                   Span const& span)
{
  stream_place const mine = place_of(ctx, span, Codec::chunk_size / 4);
  if (!mine.active) { return; }
  word4 const kept = [&] {
    auto const* const all = args.parts.owner_residual;
    if constexpr (keeps_blocks<Codec>) {
      return load_four_of_block(ctx, all + mine.index, mine.quad);
    } else {
      auto const* const four = all + owned_place<Codec>(mine.index, 4 * mine.quad);
      // The section begins at a multiple of 16 bytes, and chunks are a multiple of that.
      if constexpr (std::is_same_v<residual_element<Codec>, float>) {
        return ctx.load(reinterpret_cast<word4 const*>(four));
      } else {
        return load_four(ctx, four, 4);
      }
    }
  }();
  float const weight = weight_of_kept(args);
  float const share  = Context::divide(1.0f, static_cast<float>(args.world));
  word4* const place = span.values(mine.stream, mine.index).quad(mine.quad);
  auto const add     = [&](std::uint32_t sum, std::uint32_t of_kept) {
    float const before = weighed<Codec>(ctx, weight, bits_float(of_kept));
    return float_bits(Context::add(bits_float(sum), Context::multiply(before, share)));
  };
  word4 const sums = ctx.load(place);
  ctx.store(
    place,
    word4{add(sums.x, kept.x), add(sums.y, kept.y), add(sums.z, kept.z), add(sums.w, kept.w)});
}

//! @brief Writes what the codes of the mean lost of the sum to the owner's residual. A thread has four values, or a block.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void keep_at_owner(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               Span const& span)
{
  stream_place const mine = place_of(ctx, span, Codec::chunk_size / values_kept_at_once<Codec>);
  if (!mine.active || step_is_poisoned(args)) { return; }
  using kept_type           = residual_element<Codec>;
  coded_step const coded    = step_of_chunk(ctx, args, span, mine.stream, mine.index);
  auto const world          = static_cast<std::uint32_t>(args.world);
  std::uint64_t const chunk = std::uint64_t{mine.index} * world + static_cast<unsigned>(args.rank);
  auto const lost           = [&](float value) {
    return Context::multiply(Context::subtract(value, coded.sent(ctx, value)),
                             static_cast<float>(world));
  };
  auto const values = span.values(mine.stream, mine.index);
  if constexpr (keeps_blocks<Codec>) {
    float v[32];
    load_values_of_block(ctx, values, mine.quad, v);
    TERSUM_UNROLL
    for (float& value : v) { value = lost(value); }
    auto* const to = args.parts.owner_residual + mine.index;
    store_kept_block(ctx, args, chunk, second_rank, v, to, mine.quad);
  } else {
    std::uint32_t const draw = draw_of_kept(args, chunk, second_rank);
    kept_type* const to = args.parts.owner_residual + owned_place<Codec>(mine.index, 4 * mine.quad);
    word4 const four    = ctx.load(values.quad(mine.quad));
    float const all[4]  = {lost(bits_float(four.x)),
                           lost(bits_float(four.y)),
                           lost(bits_float(four.z)),
                           lost(bits_float(four.w))};
    if constexpr (std::is_same_v<kept_type, float>) {
      ctx.store(
        reinterpret_cast<word4*>(to),
        word4{float_bits(all[0]), float_bits(all[1]), float_bits(all[2]), float_bits(all[3])});
    } else {
      TERSUM_UNROLL
      for (unsigned i = 0; i < 4; ++i) {
        ctx.store(to + i, kept_value<kept_type>(all[i], draw + (4 * mine.quad + i) * draw_stride));
      }
    }
  }
}

}  // namespace tersum::inline v0::detail
