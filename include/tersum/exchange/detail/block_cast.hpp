// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient to native elements and back, and the tensors that bypass a codec. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int cast_threads = tuning_of<Context>.cuda.cast_threads;

//! @brief Sets the flag of the exchange if a sum is not finite. Every rank sees the same sum, and sets the same flag.
template <class Codec, class Element>
TERSUM_BODY void flag_non_finite(exchange_args<Codec, Element> const& args, float sum)
{
  if (!is_finite(sum)) { raise_flag(args); }
}

//! @brief Eight consecutive conversions, sixteen bytes at a time where source and target are aligned.
template <class From, class To, class Context, class Convert>
TERSUM_BODY void convert_eight(
  Context const& ctx, From const* from, To* to, int count, Convert convert)
{
  bool const aligned = count == 8 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
  float v[8];
  if (aligned) {
    load_eight(ctx, from, v);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = convert(v[j]); }
    store_eight(ctx, to, v);
  } else {
    for (int j = 0; j < count; ++j) {
      ctx.store(to + j, Context::template element<To>(convert(Context::value(ctx.load(from + j)))));
    }
  }
}

//! @brief Converts one chunk a block, gradient to payload when `Encode`, otherwise back with the mean. Eight coordinates
//! a thread; a long chunk takes several steps.
template <bool Encode, class Codec, class Element, class Context>
TERSUM_BODY void cast_chunks(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using wire_element      = typename Codec::quantizer_type::element;
  constexpr int at_once   = cast_threads<Context> * 8;
  chunk_entry const entry = args.table[ctx.block_rank()];
  // The payload has no bypassed coordinates, so that those before this chunk are subtracted from its offset.
  wire_element* const wire = reinterpret_cast<wire_element*>(args.payload) +
                             (entry.offset - args.records[entry.tensor].bypass);
  Element* const gradient = args.gradient + entry.offset;
  for (int step = 0; step < Codec::chunk_size; step += at_once) {
    int const within = step + static_cast<int>(ctx.thread_rank()) * 8;
    int const count  = minimum(static_cast<int>(entry.length) - within, 8);
    if (count <= 0) { return; }
    if constexpr (Encode) {
      convert_eight(
        ctx, gradient + within, wire + within, count, [](float value) { return value; });
    } else {
      float const share = Context::divide(1.0f, static_cast<float>(args.world));
      convert_eight(ctx, wire + within, gradient + within, count, [&](float sum) {
        flag_non_finite(args, sum);
        return Context::multiply(sum, share);
      });
    }
  }
}

//! @brief Blocks of `cast_selected`.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t selected_blocks(std::uint64_t chunks,
                                                      cuda_tuning const& tuning) noexcept
{
  auto const threads = static_cast<unsigned>(tuning.cast_threads);
  return (chunks * (Codec::chunk_size / 8) + threads - 1) / threads;
}

//! @brief With `Encode`, converts the chosen chunks to the payload and keeps what is left for the next step. Otherwise
//! writes the means of the payload to the gradient, and zeros where a chunk did not travel. A thread has eight
//! coordinates.
template <bool Encode, class Codec, class Element, class Context>
TERSUM_BODY void cast_selected(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using wire_element              = typename Codec::quantizer_type::element;
  constexpr std::uint64_t a_chunk = Codec::chunk_size / 8;
  std::uint64_t const thread =
    static_cast<std::uint64_t>(ctx.block_rank()) * cast_threads<Context> + ctx.thread_rank();
  std::uint64_t const chunk = thread / a_chunk;
  if (chunk >= args.chunks) { return; }
  payload_place const place = find_place(args, chunk);
  bool const stays          = place.level == 0;
  if (Encode && stays && !feeds_back<Codec>) { return; }
  chunk_entry const entry = args.table[chunk];
  int const within        = static_cast<int>(thread % a_chunk) * 8;
  int const count         = minimum(static_cast<int>(entry.length) - within, 8);
  Element* const gradient = args.gradient + entry.offset + static_cast<unsigned>(within);
  wire_element* const wire =
    reinterpret_cast<wire_element*>(args.payload + place.word) + static_cast<unsigned>(within);
  float v[8];
  if constexpr (Encode) {
    load_some(ctx, gradient, count, v);
    if constexpr (feeds_back<Codec>) {
      context_arithmetic<Context> const math{};
      float const weight = weight_of_kept(args);
      float kept[8];
      load_some(ctx, args.residual + entry.offset + static_cast<unsigned>(within), count, kept);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        v[j] = args.codec.feedback.before(math, v[j], weighed<Codec>(math, weight, kept[j]));
      }
      // What cannot be sent is a NaN from here on, and not kept.
      float sent[8], rest[8];
      bool const keeps                          = !step_is_poisoned(args);
      [[maybe_unused]] std::uint32_t const draw = draw_of_kept(args, chunk, args.rank);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        v[j]    = is_sendable<wire_element>(v[j]) ? v[j] : Context::from_bits(0x7fffffffu);
        sent[j] = v[j];
      }
      wire_element elements[8];
      round_finite(ctx, sent, elements);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        float const lost   = stays ? v[j] : Context::subtract(v[j], sent[j]);
        float const before = weighed<Codec>(math, weight, kept[j]);
        rest[j]            = args.codec.feedback.after(math, v[j], lost, before);
        bool const known =
          has_adds_lost<typename Codec::feedback_type> ? rest[j] == rest[j] : is_finite(rest[j]);
        if (!keeps || !known) { rest[j] = kept[j]; }
        auto const at = static_cast<std::uint32_t>(within + j);
        rest[j]       = round_to_kept<residual_element<Codec>>(rest[j], draw + at * draw_stride);
      }
      store_some(ctx, args.residual + entry.offset + static_cast<unsigned>(within), count, rest);
      if (!stays) { store_elements(ctx, wire, elements); }
    } else {
      store_some(ctx, wire, 8, v);
    }
  } else {
    float const share = Context::divide(1.0f, static_cast<float>(args.world));
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = 0.0f; }
    if (!stays) {
      load_some(ctx, wire, 8, v);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        if (j < count) { flag_non_finite(args, v[j]); }
        v[j] = Context::multiply(v[j], share);
      }
    }
    store_some(ctx, gradient, count, v);
  }
}

//! @brief Copies bypassing tensors to the wire when `Encode`, otherwise back with the mean. One block a tensor.
template <bool Encode, class Codec, class Element, class Context>
TERSUM_BODY void bypass_tensors(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  tensor_record const& record = args.records[ctx.block_rank()];
  if (record.chunks != 0) { return; }
  float const share = Context::divide(1.0f, static_cast<float>(args.world));
  for (std::uint64_t i = ctx.thread_rank(); i < record.size; i += ctx.block_threads()) {
    if constexpr (Encode) {
      ctx.store(args.bypass + record.bypass + i,
                Context::value(ctx.load(args.gradient + record.offset + i)));
    } else {
      float const sum = ctx.load(args.bypass + record.bypass + i);
      flag_non_finite(args, sum);
      Element const mean = Context::template element<Element>(Context::multiply(sum, share));
      if constexpr (sharding<Codec>) {
        std::uint64_t const at = record.offset + i;
        if (at < args.parts.begin || at >= args.parts.end) { continue; }
        ctx.store(args.gradient + (at - args.parts.begin), mean);
      } else {
        ctx.store(args.gradient + record.offset + i, mean);
      }
    }
  }
}

}  // namespace tersum::inline v0::detail
