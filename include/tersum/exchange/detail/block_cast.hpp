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

//! @brief Converts a chunk of `Size` coordinates by so many threads that `Count` are done at once: a thread's eight where the chunk is
//! whole, and source and target are aligned; otherwise each time as many neighbours as there are threads, which fill sectors.
//! @tparam Eight  A `thread_eight`.
template <class Eight, int Count, int Size, class From, class To, class Context, class Convert>
TERSUM_BODY void convert_chunk(
  Context const& ctx, From const* from, To* to, std::uint32_t length, Convert const& convert)
{
  constexpr int apart   = Eight::apart;
  unsigned const thread = ctx.thread_rank();
  // Not &&: one branch is enough.
  bool const whole = length == Size, reads = moves_at_once<apart>(from),
             writes = moves_at_once<apart>(to);
  if (whole & reads & writes) {
    auto const first = static_cast<unsigned>(Eight::first(static_cast<int>(thread)));
    for (unsigned step = 0; step < Size; step += Count) {
      float v[8];
      load_fours<apart>(ctx, from + (first + step), v);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) { v[j] = convert(v[j]); }
      store_fours<apart>(ctx, to + (first + step), v);
    }
  } else {
    TERSUM_NO_UNROLL
    for (std::uint32_t at = thread; at < length; at += Count / 8) {
      ctx.store(to + at,
                Context::template element<To>(convert(Context::value(ctx.load(from + at)))));
    }
  }
}

//! @brief Converts one chunk a block, gradient to payload when `Encode`, otherwise back with the mean. Eight coordinates
//! a thread; a long chunk takes several steps.
template <bool Encode, class Codec, class Element, class Context>
TERSUM_BODY void cast_chunks(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using wire_element      = typename Codec::quantizer_type::element;
  constexpr int size      = Codec::chunk_size;
  constexpr int at_once   = minimum(cast_threads<Context> * 8, size);
  using eight             = thread_eight<Element, at_once>;
  chunk_entry const entry = args.table[ctx.block_rank()];
  // The payload has no bypassed coordinates, so that those before this chunk are subtracted from its offset.
  wire_element* const wire = reinterpret_cast<wire_element*>(args.payload) +
                             (entry.offset - args.records[entry.tensor].bypass);
  Element* const gradient = args.gradient + entry.offset;
  if constexpr (at_once < cast_threads<Context> * 8) {
    if (ctx.thread_rank() >= at_once / 8) { return; }
  }
  if constexpr (Encode) {
    convert_chunk<eight, at_once, size>(
      ctx, gradient, wire, entry.length, [](float value) { return value; });
  } else {
    float const share = Context::divide(1.0f, static_cast<float>(args.world));
    bool sound        = true;
    convert_chunk<eight, at_once, size>(ctx, wire, gradient, entry.length, [&](float sum) {
      sound = sound && is_finite(sum);
      return Context::multiply(sum, share);
    });
    if (!sound) { raise_flag(args); }
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
  using wire_element         = typename Codec::quantizer_type::element;
  using eight                = thread_eight<Element, Codec::chunk_size>;
  constexpr int apart        = eight::apart;
  constexpr unsigned a_chunk = Codec::chunk_size / 8, threads = cast_threads<Context>;
  static_assert(threads % a_chunk == 0 || a_chunk % threads == 0);
  unsigned within_chunk = ctx.thread_rank();
  std::uint32_t chunk   = ctx.block_rank();  // there are no more than 2^31
  if constexpr (a_chunk <= threads) {
    chunk = chunk * (threads / a_chunk) + within_chunk / a_chunk;
    within_chunk %= a_chunk;
  } else {
    within_chunk += chunk % (a_chunk / threads) * threads;
    chunk /= a_chunk / threads;
  }
  if (chunk >= args.chunks) { return; }
  payload_place const place = find_place(args, chunk);
  bool const stays          = place.level == 0;
  if (Encode && stays && !feeds_back<Codec>) { return; }
  chunk_entry const entry = args.table[chunk];
  int const within        = eight::first(static_cast<int>(within_chunk));
  int left                = static_cast<int>(entry.length) - within;
  if constexpr (apart == 4) { left = minimum(left, 8); }
  Element* const gradient = args.gradient + entry.offset + static_cast<unsigned>(within);
  wire_element* const wire =
    reinterpret_cast<wire_element*>(args.payload + place.word) + static_cast<unsigned>(within);
  float v[8];
  if constexpr (Encode) {
    load_some<apart>(ctx, gradient, left, v);
    if constexpr (feeds_back<Codec>) {
      context_arithmetic<Context> const math{};
      float const weight   = weight_of_kept(args);
      auto* const residual = args.residual + entry.offset + static_cast<unsigned>(within);
      float kept[8];
      load_some<apart>(ctx, residual, left, kept);
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
        auto const at = static_cast<std::uint32_t>(within + (j / 4 * apart + j % 4));
        rest[j]       = round_to_kept<residual_element<Codec>>(rest[j], draw + at * draw_stride);
      }
      store_some<apart>(ctx, residual, left, rest);
      if (!stays) { store_elements<apart>(ctx, wire, elements); }
    } else {
      store_some<apart>(ctx, wire, apart + 4, v);
    }
  } else {
    float const share = Context::divide(1.0f, static_cast<float>(args.world));
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = 0.0f; }
    if (!stays) {
      bool sound = true;
      load_some<apart>(ctx, wire, apart + 4, v);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        sound = sound && (is_finite(v[j]) || j / 4 * apart + j % 4 >= left);
        v[j]  = Context::multiply(v[j], share);
      }
      if (!sound) { raise_flag(args); }
    }
    store_some<apart>(ctx, gradient, left, v);
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
