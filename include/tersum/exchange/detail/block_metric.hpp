// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The way into the units of a metric and back: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The scales of this thread's coordinates as they are kept, loaded arrangement, zeros where there are none; returns the
//! largest magnitude of the chunk's scales. All threads of the warp call it.
//! @tparam InRows  Whether lanes load neighbours, in more instructions. Of the kernels of a rank's own part, which have all kinds of
//!                 chunks, those for scales that are not aligned do.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY float load_scales(Context const& ctx,
                                            exchange_args<Codec, Element> const& args,
                                            own_chunk<Codec> const& mine,
                                            float (&scales)[32])
{
  auto const* const from = args.metric.scales + mine.offset;
  bool const at_once     = moves_in_eights<Codec::chunk_size>(from, mine.length);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    load_either_way<Edge, InRows>(ctx, mine, from, at_once, r, scales + 8 * r);
  }
  std::uint32_t const largest = Context::bits(thread_norm<32>::largest(ctx, scales));
  return Context::from_bits(
    chunk_maximum(ctx, largest, mine, static_cast<float*>(nullptr)));  // chunks lie in warps
}

//! @brief Replaces values of the loaded arrangement by apply(value, scale) with their scales, raised to the least of the chunk.
//! Without a metric nothing changes.
//! @{
template <bool Edge, bool InRows, in_metric Codec, class Element, class Context, class Apply>
TERSUM_BODY void apply_scales(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32],
                              Apply const& apply)
{
  float scales[32];
  float const largest = load_scales<Edge, InRows>(ctx, args, mine, scales);
  float const least   = least_scale(context_arithmetic<Context>{}, args.codec.metric, largest);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { v[i] = apply(v[i], raised_scale(scales[i], least)); }
}
template <bool Edge, bool InRows, class... Given>
TERSUM_BODY void apply_scales(Given const&...)
{
}
//! @}

//! @brief Divides values of the loaded arrangement by their scales.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
TERSUM_BODY void divide_by_scales(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  own_chunk<Codec> const& mine,
                                  float (&v)[32])
{
  apply_scales<Edge, InRows>(
    ctx, args, mine, v, [](float value, float scale) { return Context::divide(value, scale); });
}

//! @brief Multiplies values of the loaded arrangement by their scales.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
TERSUM_BODY void multiply_by_scales(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    own_chunk<Codec> const& mine,
                                    float (&v)[32])
{
  apply_scales<Edge, InRows>(
    ctx, args, mine, v, [](float value, float scale) { return Context::multiply(value, scale); });
}

//! @brief Multiplies decoded values of the loaded arrangement by their scales; scales that the library keeps follow them.
//! Without a metric nothing changes.
//! @{
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void leave_metric(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32])
{
  multiply_by_scales<Edge>(ctx, args, mine, v);
}
template <bool Edge, keeps_metric Codec, class Element, class Context>
TERSUM_BODY void leave_metric(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32])
{
  using scale_type = metric_scale<Codec>;
  context_arithmetic<Context> const math{};
  float scales[32];
  float const largest = load_scales<Edge>(ctx, args, mine, scales);
  bool const unknown  = is_unknown_scale(largest);
  float const least   = least_scale(math, args.codec.metric, largest);
  float const before  = static_cast<float>(args.header->step);
  float first         = 0.0f;
  if (ctx.warp_max(unknown ? 1u : 0u) != 0) {
    float existing[32];
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      existing[i] = mine.active && mine.coordinate(i) < mine.length ? v[i] : 0.0f;
    }
    float const decoded = block_norm<Codec::chunk_size>::squared(ctx, mine, nullptr, existing);
    float const square  = mine.active ? first_square(math, args, mine.chunk, decoded) : decoded;
    first               = first_scale(math, square, static_cast<std::uint32_t>(mine.length));
  }
  std::uint32_t const draw = first_draw(mine.chunk, args.header->sign_key);
  auto const kept          = [&](float next, int i) {
    auto const at = static_cast<std::uint32_t>(mine.coordinate(i));
    return kept_scale<scale_type>(next, scales[i], draw + at * draw_stride);
  };
  if (unknown) {  // whose values are in units of 1
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { scales[i] = kept(first, i); }
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      float const scale = raised_scale(scales[i], least);
      scales[i]         = kept(args.codec.metric.update(math, v[i], scale, before), i);
      v[i]              = Context::multiply(v[i], scale);
    }
  }
  if (!step_is_poisoned(args)) { store_coordinates<Edge>(ctx, args.metric.scales, mine, scales); }
}
//! @}

}  // namespace tersum::inline v0::detail
