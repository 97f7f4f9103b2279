// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk in the hand of a thread of the CPU, in the units of a metric and back.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Where the scales of a chunk are kept.
template <class Chunk>
[[nodiscard]] auto* scales_of(Chunk const& chunk)
{
  return chunk.args.metric.scales + chunk.entry.offset;
}

//! @brief The largest of the scales.
template <class Chunk>
[[nodiscard]] float largest_scale_of(Chunk const& chunk)
{
  return largest_of(chunk.set, scales_of(chunk), chunk.length());
}

//! @brief What scales are raised to.
template <class Chunk>
[[nodiscard]] float least_of(Chunk const& chunk)
{
  return least_scale(typename Chunk::math{}, chunk.args.codec.metric, largest_scale_of(chunk));
}

template <class Chunk, class From, class Body>
requires in_metric<typename Chunk::codec_type>
void in_units(Chunk const& chunk, From const* from, Body const& body)
{
  using scale = metric_scale<typename Chunk::codec_type>;
  if (chunk.is_whole()) {
    body(divided<From, scale>{from, scales_of(chunk), least_of(chunk)});
  } else {
    scale padded[extent(Chunk::size)];
    std::fill(
      std::copy_n(scales_of(chunk), chunk.entry.length, padded), padded + Chunk::size, scale{});
    body(divided<From, scale>{from, padded, least_of(chunk)});
  }
}

template <class Chunk>
requires in_metric<typename Chunk::codec_type>
void to_own_units(Chunk const& chunk, float* values)
{
  std::uint32_t const length = chunk.entry.length;
  multiply_by_scales(chunk.set, values, scales_of(chunk), least_of(chunk), values, length);
  std::fill(values + length, values + Chunk::size, 0.0f);
}

template <class Chunk, class Decode>
requires in_metric<typename Chunk::codec_type>
void leave_metric(Chunk const& chunk,
                  std::uint64_t first,
                  std::uint64_t count,
                  typename Chunk::element* to,
                  Decode const& decode_to)
{
  alignas(64) typename Chunk::array decoded;
  decode_to(+decoded);
  multiply_by_scales(
    chunk.set, decoded + first, scales_of(chunk) + first, least_of(chunk), to, count);
}

//! @brief What the kernels do, of which those of chunks that are not whole get copies.
template <bool Keeps, class Chunk, class Scale, class Decode>
void decode_by(Chunk const& chunk,
               multiplied<typename Chunk::element, Scale, Keeps> whole,
               Decode const& decode_to)
{
  if (chunk.is_whole()) {
    decode_to(whole);
    return;
  }
  typename Chunk::element copy[extent(Chunk::size)];
  Scale padded[extent(Chunk::size)];
  std::uint32_t const length = chunk.entry.length;
  std::fill(std::copy_n(whole.scales, length, padded), padded + Chunk::size, Scale{});
  Scale* const scales = whole.scales;
  whole.to            = copy;
  whole.scales        = padded;
  decode_to(whole);
  std::copy_n(copy, length, chunk.gradient());
  if (Keeps) { std::copy_n(padded, length, scales); }
}

template <class Chunk, class Decode>
requires in_metric<typename Chunk::codec_type>
void leave_metric(Chunk const& chunk, Decode const& decode_to)
{
  using whole =
    multiplied<typename Chunk::element, metric_scale<typename Chunk::codec_type>, false>;
  decode_by(
    chunk, whole{chunk.gradient(), scales_of(chunk), least_of(chunk), 1.0f, 1.0f, 0}, decode_to);
}

//! @brief The scales after a chunk was decoded, by the metric's plain form. Overwrites the values.
template <class Chunk>
void keep_scales(Chunk const& chunk, typename Chunk::array& values, float largest, float lowest)
{
  using math                 = typename Chunk::math;
  using scale                = metric_scale<typename Chunk::codec_type>;
  auto const& args           = chunk.args;
  auto* const to             = scales_of(chunk);
  std::uint32_t const length = chunk.entry.length;
  float const before         = static_cast<float>(args.header->step);
  bool const unknown         = is_unknown_scale(largest);
  float first                = 0.0f;
  if (unknown) {
    std::fill(values + length, values + Chunk::size, 0.0f);
    float const decoded = square_norm<Chunk::size>(chunk.set, +values);
    first = first_scale(math{}, first_square(math{}, args, chunk.number(), decoded), length);
  }
  std::uint32_t const draw = first_draw(chunk.number(), args.header->sign_key);
  for (std::uint32_t i = 0; i < length; ++i) {
    float const kept = to_float(to[i]);
    float next       = first;
    if (!unknown) {
      next = args.codec.metric.update(math{}, values[i], raised_scale(kept, lowest), before);
    }
    to[i] = from_float<scale>(kept_scale<scale>(next, kept, draw + i * draw_stride));
  }
}

template <class Chunk, class Decode>
requires keeps_metric<typename Chunk::codec_type>
void leave_metric(Chunk const& chunk, Decode const& decode_to)
{
  using codec         = typename Chunk::codec_type;
  auto const& args    = chunk.args;
  auto const& metric  = args.codec.metric;
  float const largest = largest_scale_of(chunk);
  float const lowest  = least_scale(typename Chunk::math{}, metric, largest);
  bool const keeps    = !step_is_poisoned(args);
  if constexpr (has_steps_averaged<typename codec::metric_type>) {
    using whole       = multiplied<typename Chunk::element, metric_scale<codec>, true>;
    float const steps = metric.steps_averaged(static_cast<float>(args.header->step));
    bool const usual  = steps >= 1.0f && steps < 0x1p60f;
    if (keeps && usual && !is_unknown_scale(largest)) {
      std::uint32_t const draw = first_draw(chunk.number(), args.header->sign_key);
      decode_by(chunk,
                whole{chunk.gradient(), scales_of(chunk), lowest, steps, 1.0f / steps, draw},
                decode_to);
      return;
    }
  }
  alignas(64) typename Chunk::array values;
  decode_to(+values);
  multiply_by_scales(
    chunk.set, values, scales_of(chunk), lowest, chunk.gradient(), chunk.entry.length);
  if (keeps) { keep_scales(chunk, values, largest, lowest); }
}

template <class Chunk>
requires in_metric<typename Chunk::codec_type>
void leave_metric_in_place(Chunk const& chunk, float* values) { to_own_units(chunk, values); }
template <class Chunk>
requires keeps_metric<typename Chunk::codec_type>
void leave_metric_in_place(Chunk const& chunk, float* values)
{
  alignas(64) typename Chunk::array decoded;
  std::copy_n(values, Chunk::size, decoded);
  float const largest = largest_scale_of(chunk);
  float const lowest  = least_scale(typename Chunk::math{}, chunk.args.codec.metric, largest);
  to_own_units(chunk, values);
  if (!step_is_poisoned(chunk.args)) { keep_scales(chunk, decoded, largest, lowest); }
}

}  // namespace tersum::inline v0::detail
