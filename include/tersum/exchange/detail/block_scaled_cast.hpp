// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chosen chunks to native elements and back in the units of a metric. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_basis.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/form/in_wire.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What a quarter of a thread's coordinates leaves for the next step, in units of the gradient. What cannot be sent becomes a
//! NaN, and is not kept.
//! @param bounds  Of what is sent: zeros where the chunk stays.
//! @param keeps   Whether the residual changes in this step.
//! @param v       Gradient and residual; receives what is kept.
//! @param scales  Raised.
//! @param kept    What was kept before.
//! @param rounded Receives what is sent.
template <class Codec, class Element, class Wire, class Context>
TERSUM_BODY void keep_scaled_quarter(Context const& ctx,
                                     exchange_args<Codec, Element> const& args,
                                     own_chunk<Codec> const& mine,
                                     summand_args const& bounds,
                                     bool keeps,
                                     int r,
                                     float* v,
                                     float const* scales,
                                     float const (&kept)[8],
                                     Wire (&rounded)[8])
{
  context_arithmetic<Context> const math{};
  float const weight                        = weight_of_kept(args);
  [[maybe_unused]] std::uint32_t const draw = draw_of_kept(args, mine.chunk, args.rank);
  TERSUM_UNROLL
  for (int i = 0; i < 8; i += 2) {
    float sent[2];
    TERSUM_UNROLL
    for (int k = 0; k < 2; ++k) {
      float const quotient = Context::divide(v[i + k], scales[i + k]);
      sent[k] = is_sendable<Wire>(quotient) ? quotient : Context::from_bits(0x7fffffffu);
    }
    round_bounded(ctx, bounds, sent, rounded + i);
    TERSUM_UNROLL
    for (int k = 0; k < 2; ++k) {
      int const j        = i + k;
      float const own    = Context::multiply(sent[k], scales[j]);
      float const lost   = Context::subtract(v[j], own);
      float const before = weighed<Codec>(math, weight, kept[j]);
      float rest         = args.codec.feedback.after(math, v[j], lost, before);
      if (!keeps || !is_kept<Codec>(rest)) { rest = kept[j]; }
      auto const at = static_cast<std::uint32_t>(mine.coordinate(8 * r + j));
      v[j]          = round_to_kept<residual_element<Codec>>(rest, draw + at * draw_stride);
    }
  }
}

//! @brief Converts the quotients of the chosen chunks to the payload and keeps what is left for the next step.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void encode_scaled_casts(Context const& ctx,
                                     exchange_args<Codec, Element> const& args,
                                     std::uint64_t first_chunk)
{
  using wire_element    = typename Codec::quantizer_type::element;
  constexpr int quarter = Codec::chunk_size / 4;
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  payload_place place{};
  if (mine.active) { place = find_place(args, mine.chunk); }
  bool const stays = place.level == 0;
  mine.active      = mine.active & (feeds_back<Codec> | !stays);
  if (all_idle(ctx, mine)) { return; }
  // The payload and its chunks are aligned to 16 bytes.
  wire_element* const wire =
    reinterpret_cast<wire_element*>(args.payload + place.word) + mine.thread * 8;
  float v[32], scales[32];
  load_coordinates<Edge>(ctx, args, mine, v);
  float const largest = load_scales<Edge>(ctx, args, mine, scales);
  float const least   = least_scale(context_arithmetic<Context>{}, args.codec.metric, largest);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { scales[i] = raised_scale(scales[i], least); }
  if constexpr (feeds_back<Codec>) {
    // Zeros are sent of a chunk that stays.
    summand_args const bounds = stays ? summand_args{} : args.parts;
    bool const keeps          = !step_is_poisoned(args);
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      float kept[8];
      load_eights<Edge>(ctx, mine, args.residual + mine.offset, r, kept);
      wire_element rounded[8];
      keep_scaled_quarter(
        ctx, args, mine, bounds, keeps, r, v + 8 * r, scales + 8 * r, kept, rounded);
      if (mine.active && !stays) {
        if constexpr (sizeof(wire_element) == 2) {
          store_fours_of_elements<4>(ctx, wire + r * quarter, rounded);
        } else {
          thread_values<8>::store<false>(ctx, rounded, wire + r * quarter);
        }
      }
    }
    store_coordinates<Edge>(ctx, args.residual, mine, v);
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = Context::divide(v[i], scales[i]); }
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      if (mine.active) { thread_values<8>::store<false>(ctx, v + 8 * r, wire + r * quarter); }
    }
  }
}

//! @brief Sets the flag of the exchange if a sum is not finite: before `decode_scaled_casts`, where scales that the library keeps
//! follow its flag. A thread has eight elements of the payload.
template <class Codec, class Element, class Context>
TERSUM_BODY void inspect_scaled_casts(Context const& ctx,
                                      exchange_args<Codec, Element> const& args,
                                      std::uint64_t eights)
{
  using wire_element = typename Codec::quantizer_type::element;
  auto const own     = std::uint64_t{ctx.block_rank()} * ctx.block_threads() + ctx.thread_rank();
  if (own >= eights) { return; }
  float v[8];
  thread_values<8>::load(ctx, reinterpret_cast<wire_element const*>(args.payload) + own * 8, v);
  bool sound = true;
  TERSUM_UNROLL
  for (int j = 0; j < 8; ++j) { sound = sound & is_finite(v[j]); }
  if (!sound) { raise_flag(args); }
}

//! @brief Writes the means of the payload, times their scales, to the gradient, zeros elsewhere; kept scales follow them.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_scaled_casts(Context const& ctx,
                                     exchange_args<Codec, Element> const& args,
                                     std::uint64_t first_chunk)
{
  using wire_element    = typename Codec::quantizer_type::element;
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  payload_place place{};
  if (mine.active) { place = find_place(args, mine.chunk); }
  wire_element const* const wire = reinterpret_cast<wire_element const*>(args.payload + place.word);
  float const share              = Context::divide_moderate(1.0f, static_cast<float>(args.world));
  own_chunk<Codec> sent          = mine;
  sent.active                    = mine.active & (place.level != 0);
  float v[32];
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) { load_quarter<false>(ctx, sent, sent.active, wire, r, v + 8 * r); }
  bool sound = true;
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    sound = sound & is_finite(v[i]);
    v[i]  = Context::multiply(v[i], share);
  }
  // Scales that the library keeps follow zeros, too; sums were inspected before.
  if (!keeps_metric<Codec> && !sound) { raise_flag(args); }
  leave_metric<Edge>(ctx, args, keeps_metric<Codec> ? mine : sent, v);
  store_coordinates<Edge>(ctx, args.gradient, mine, v);
}

}  // namespace tersum::inline v0::detail
