// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient to native elements and back, and the tensors that bypass a codec. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/state.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int cast_threads = tuning_of<Context>.cuda.cast_threads;

//! @brief Converts a chunk of `Size` coordinates by so many threads that `Count` are done at once: a thread's eight where the chunk is
//! whole, and source and target are aligned; otherwise each time as many neighbours as there are threads, which fill sectors.
//! @tparam Eight  An `eight_of`.
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
    auto const first = static_cast<unsigned>(Eight::first_of(static_cast<int>(thread)));
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
  using eight             = eight_of<Element, at_once>;
  chunk_entry const entry = args.table[ctx.block_rank()];
  // The payload has no bypassed coordinates, so that those before this chunk are subtracted from its offset.
  wire_element* const wire = reinterpret_cast<wire_element*>(args.payload) +
                             (entry.offset - args.records[entry.tensor].bypass);
  Element* const gradient = args.gradient + entry.offset;
  if (at_once < cast_threads<Context> * 8 && ctx.thread_rank() >= at_once / 8) { return; }
  if constexpr (Encode) {
    convert_chunk<eight, at_once, size>(
      ctx, gradient, wire, entry.length, [](float value) { return value; });
  } else {
    float const share = Context::divide_moderate(1.0f, static_cast<float>(args.world));
    bool sound        = true;
    convert_chunk<eight, at_once, size>(ctx, wire, gradient, entry.length, [&](float sum) {
      sound = sound && is_finite(sum);
      return Context::multiply(sum, share);
    });
    if (!sound) { raise_flag(args); }
  }
}

//! @brief Sets a whole chunk of `Size` coordinates to zero that is not aligned, by Size / 8 threads: what lies between multiples of
//! sixteen bytes at once, and an element at a time the two ends, which are sixteen bytes together.
template <unsigned Size, class Element, class Context>
TERSUM_BODY void clear_misaligned(Context const& ctx, Element* to, unsigned thread)
{
  constexpr unsigned threads = Size / 8, at_once = 16 / sizeof(Element),
                     pieces = Size / at_once - 1;
  auto const place          = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to) % 16);
  unsigned const begin      = at_once - place / static_cast<unsigned>(sizeof(Element));
  TERSUM_UNROLL
  for (unsigned step = 0; step < pieces; step += threads) {
    unsigned const piece = step + thread;
    if (piece < pieces) {
      ctx.store(reinterpret_cast<word4*>(to + (begin + piece * at_once)), word4{});
    }
  }
  TERSUM_UNROLL
  for (unsigned step = 0; step < at_once; step += threads) {
    unsigned const end = step + thread;
    if (end < at_once) { ctx.store(to + (end < begin ? end : end + pieces * at_once), Element{}); }
  }
}

//! @brief Blocks of `cast_chunks`.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t cast_blocks(std::uint64_t chunks,
                                                  cuda_tuning const& tuning) noexcept
{
  if (!selects<Codec>) { return chunks; }
  auto const threads = static_cast<unsigned>(tuning.cast_threads);
  return (chunks * (Codec::chunk_size / 8) + threads - 1) / threads;
}

//! @brief With `Encode`, converts the chosen chunks to the payload and keeps what is left for the next step. Otherwise writes
//! the means of the payload to the gradient, and zeros where a chunk did not travel. A thread has eight coordinates.
template <bool Encode, selects Codec, class Element, class Context>
TERSUM_BODY void cast_chunks(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using wire_element         = typename Codec::quantizer_type::element;
  using eight                = eight_of<Element, Codec::chunk_size>;
  constexpr int apart        = eight::apart;
  constexpr unsigned a_chunk = Codec::chunk_size / 8, threads = cast_threads<Context>;
  static_assert(threads % a_chunk == 0 || a_chunk % threads == 0);
  unsigned thread     = ctx.thread_rank();  // among those of its chunk
  std::uint32_t chunk = ctx.block_rank();   // there are no more than 2^31
  if constexpr (a_chunk <= threads) {
    chunk = chunk * (threads / a_chunk) + thread / a_chunk;
    thread %= a_chunk;
  } else {
    thread += chunk % (a_chunk / threads) * threads;
    chunk /= a_chunk / threads;
  }
  if (chunk >= args.chunks) { return; }
  payload_place const place = find_place(args, chunk);
  bool const stays          = place.level == 0;
  if (Encode && stays && !feeds_back<Codec>) { return; }
  chunk_entry const entry  = args.table[chunk];
  Element* const gradient  = args.gradient + entry.offset;
  wire_element* const wire = reinterpret_cast<wire_element*>(args.payload + place.word);
  // The payload and its chunks are aligned to 16 bytes.
  bool aligned = moves_at_once<apart>(gradient);
  if constexpr (Encode && feeds_back<Codec>) {
    aligned = moves_at_once<apart>(gradient, args.residual + entry.offset);
  }
  eight const own{static_cast<int>(thread), static_cast<int>(entry.length), aligned};
  float v[8];
  if constexpr (Encode) {
    if constexpr (feeds_back<Codec>) {
      context_arithmetic<Context> const math{};
      float const weight   = weight_of_kept(args);
      auto* const residual = args.residual + entry.offset;
      float kept[8];
      own.either_way([&]<bool AtOnce>() {
        own.template load<AtOnce>(ctx, gradient, v);
        own.template load<AtOnce>(ctx, residual, kept);
      });
      bool const keeps                          = !step_is_poisoned(args);
      [[maybe_unused]] std::uint32_t const draw = draw_of_kept(args, chunk, args.rank);
      float rest[8];
      wire_element elements[8];
      TERSUM_UNROLL
      for (int i = 0; i < 8; i += 2) {
        bool can[2];
        float whole[2], sent[2];
        TERSUM_UNROLL
        for (int k = 0; k < 2; ++k) {
          float const before = weighed<Codec>(math, weight, kept[i + k]);
          can[k]             = is_sendable<wire_element>(v[i + k]);
          whole[k]           = args.codec.feedback.before(math, v[i + k], before);
          sent[k]            = can[k] ? whole[k] : Context::from_bits(0x7fffffffu);
        }
        round_bounded(ctx, args.parts, sent, elements + i);
        TERSUM_UNROLL
        for (int k = 0; k < 2; ++k) {
          int const j        = i + k;
          float const lost   = stays ? whole[k] : Context::subtract(whole[k], sent[k]);
          float const before = weighed<Codec>(math, weight, kept[j]);
          rest[j]            = args.codec.feedback.after(math, whole[k], lost, before);
          if (!can[k] || !is_kept<Codec>(rest[j])) { rest[j] = kept[j]; }
          auto const at = static_cast<std::uint32_t>(own[j]);
          rest[j]       = round_to_kept<residual_element<Codec>>(rest[j], draw + at * draw_stride);
        }
      }
      own.either_way([&]<bool AtOnce>() {
        if (keeps) { own.template store<AtOnce>(ctx, residual, rest); }
        if (!stays) { own.template store<AtOnce, true>(ctx, wire, elements); }
      });
    } else {
      own.either_way([&]<bool AtOnce>() {
        own.template load<AtOnce>(ctx, gradient, v);
        own.template store<AtOnce, true>(ctx, wire, v);
      });
    }
  } else {
    // Of chunks whose threads fill no sector with neighbours most stay.
    if (a_chunk * sizeof(Element) < 32 && stays && !aligned && entry.length == Codec::chunk_size) {
      return clear_misaligned<Codec::chunk_size>(ctx, gradient, thread);
    }
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = 0.0f; }
    if (!stays) {
      float const share = Context::divide_moderate(1.0f, static_cast<float>(args.world));
      bool sound        = true;
      own.either_way([&]<bool AtOnce>() { own.template load<AtOnce>(ctx, wire, v); });
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        sound = sound && is_finite(v[j]);
        v[j]  = Context::multiply(v[j], share);
      }
      if (!sound) { raise_flag(args); }
    }
    own.either_way([&]<bool AtOnce>() { own.template store<AtOnce>(ctx, gradient, v); });
  }
}

//! @brief Copies bypassing tensors to the wire when `Encode`, otherwise back: the mean, or what is published. One block a tensor, or a
//! piece of one.
template <bool Encode, class Codec, class Element, class Context>
TERSUM_BODY void bypass_tensors(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  tensor_record const& record = args.records[ctx.block_rank()];
  if (record.chunks != 0) { return; }
  float const share = Context::divide_moderate(1.0f, static_cast<float>(args.world));
  for (std::uint64_t i = ctx.thread_rank(); i < record.size; i += ctx.block_threads()) {
    move_bypassed<Encode>(ctx, args, record, i, share);
  }
}

}  // namespace tersum::inline v0::detail
