// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The way of an `entropy_codec` into the units of a metric and back: kernel bodies. A chunk has the threads and the arrangement
//! that it has under other codecs, so that they share its largest scale.

#pragma once

#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_metric.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_residuals.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/exchange/detail/stream_codes.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/quantize/rice_codes.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The stream of a thread's chunk and its number there.
struct chunk_in_stream {
  std::uint32_t stream;
  std::uint32_t index;

  TERSUM_BODY chunk_in_stream(stream_set const& set, std::uint64_t chunk)
    : stream{static_cast<std::uint32_t>(chunk) % set.streams}, index{
                                                                 static_cast<std::uint32_t>(chunk) /
                                                                 set.streams}
  {
  }
};

//! @brief Calls visit(four neighbours in a span, the first of them in v) for a thread's coordinates of a chunk, loaded arrangement.
template <class Codec, class Span, class Visit>
TERSUM_BODY void each_quad(own_chunk<Codec> const& mine,
                           Span const& span,
                           float* v,
                           Visit const& visit)
{
  chunk_in_stream const at{span.set, mine.chunk};
  auto const values = span.values(at.stream, at.index);
  TERSUM_UNROLL
  for (int i = 0; i < 32; i += 4) {
    visit(values.quad(static_cast<std::uint32_t>(mine.coordinate(i)) / 4), v + i);
  }
}

//! @brief The gradient to values in the units of the metric, with what was kept.
template <bool Edge, class Codec, class Element, class Span, class Context>
TERSUM_BODY void fill_in_metric(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                Span const& span,
                                std::uint64_t first_chunk)
{
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float v[32];
  load_coordinates<Edge>(ctx, args, mine, v);
  divide_by_scales<Edge>(ctx, args, mine, v);
  if (!mine.active) { return; }
  each_quad(mine, span, v, [&](word4* to, float const* four) {
    ctx.store(
      to,
      word4{float_bits(four[0]), float_bits(four[1]), float_bits(four[2]), float_bits(four[3])});
  });
}

//! @brief Writes what the codes lost, in units of the gradient, to the residual.
template <bool Edge, class Codec, class Element, class Span, class Context>
TERSUM_BODY void keep_in_metric(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                Span const& span,
                                std::uint64_t first_chunk)
{
  if (step_is_poisoned(args)) { return; }
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float step    = 0.0f;
  float inverse = 0.0f;
  if (mine.active) {
    chunk_in_stream const at{span.set, mine.chunk};
    bool const finer = has_finer_step(ctx, args, span, at.stream, at.index);
    if (ctx.load(span.length(at.stream, at.index)) != 0) {
      step    = bits_float(ctx.load(span.part(at.stream) + (finer ? 1 : 0)));
      inverse = Context::divide(1.0f, step);
    }
  }
  float v[32];
  float sent[32];
  load_coordinates<Edge>(ctx, args, mine, v);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { sent[i] = v[i]; }
  apply_scales<Edge, Edge>(ctx, args, mine, sent, [&](float value, float scale) {
    float const in_units = Context::divide(value, scale);
    float const own      = value_of_code(ctx, code_magnitude(ctx, in_units, inverse), step);
    float const in_own   = Context::multiply(float_bits(in_units) >> 31 != 0 ? -own : own, scale);
    return largest_for_infinity(in_own);
  });
  keep_lost<Edge>(
    ctx, args, mine, v, [&](int i, float& value) { value = Context::subtract(value, sent[i]); });
}

//! @brief Sums to the mean, in units of the gradient; scales that the library keeps follow them. Where all values of a chunk are
//! finite its mean is, too: what no float holds is the largest.
template <bool Edge, class Codec, class Element, class Span, class Context>
TERSUM_BODY void return_in_metric(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  Span const& span,
                                  std::uint64_t first_chunk)
{
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float v[32] = {};
  if (mine.active) {
    each_quad(mine, span, v, [&](word4 const* from, float* four) {
      word4 const values = ctx.load(from);
      four[0]            = bits_float(values.x);
      four[1]            = bits_float(values.y);
      four[2]            = bits_float(values.z);
      four[3]            = bits_float(values.w);
    });
  }
  leave_metric<Edge>(ctx, args, mine, v);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { v[i] = largest_for_infinity(v[i]); }
  store_coordinates<Edge>(ctx, args.gradient, mine, v);
}

}  // namespace tersum::inline v0::detail
