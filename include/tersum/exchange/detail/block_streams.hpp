// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Streams of an `entropy_codec`: kernel bodies. A thread has four values of a chunk, or all of a chunk.

#pragma once

#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_stream_kept.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr std::uint32_t stream_threads =
  static_cast<std::uint32_t>(tuning_of<Context>.cuda.stream_threads);

//! @brief The chunk, or the part of a chunk, that a thread has. Streams begin at a new block.
struct stream_place {
  std::uint32_t stream;
  std::uint32_t index;
  std::uint32_t quad;
  bool active;
};

//! @param parts  Threads of a chunk. Those of the same part of 32 chunks are neighbours.
template <class Context, class Span>
[[nodiscard]] TERSUM_BODY stream_place place_of(Context const& ctx,
                                                Span const& span,
                                                std::uint32_t parts)
{
  std::uint64_t const of_stream = std::uint64_t{span.set.slots} * parts;
  std::uint32_t const blocks =
    static_cast<std::uint32_t>((of_stream + stream_threads<Context> - 1) / stream_threads<Context>);
  std::uint32_t const stream = ctx.block_rank() / blocks;
  std::uint64_t const at =
    std::uint64_t{ctx.block_rank() % blocks} * stream_threads<Context> + ctx.thread_rank();
  std::uint64_t const group = at / 32 / parts;
  auto const index          = static_cast<std::uint32_t>(group * 32 + at % 32);
  return {
    stream, index, static_cast<std::uint32_t>(at / 32 % parts), index < span.set.chunks_of(stream)};
}

//! @brief The gradient to values, with what was kept.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void fill_streams(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              Span const& span)
{
  stream_place const mine = place_of(ctx, span, Codec::chunk_size / 4);
  if (mine.active) { fill_quad(ctx, args, span, mine.stream, mine.index, mine.quad); }
}

//! @brief The largest magnitudes of chunks and streams.
template <class Span, class Context>
TERSUM_BODY void stream_peaks(Context const& ctx, Span const& span)
{
  stream_place const mine = place_of(ctx, span, 1);
  std::uint32_t peak      = 0;
  if (mine.active) {
    peak = peak_of(ctx, span.values(mine.stream, mine.index));
    ctx.store(span.bits(mine.stream, mine.index), peak);
  }
  std::uint32_t const largest = ctx.warp_max(peak < 0x7f800000u ? peak : 0u);
  if (ctx.thread_rank() % 32 == 0 && largest > 0) {
    ctx.atomic_max(&span.memory.searches[mine.stream].peak, largest);
  }
}

//! @brief Counts the bits of seven steps, and goes on to the finest that fits. The last block of a stream does that.
//! @param apart  By how much their numbers differ.
template <class Span, class Context>
TERSUM_BODY void count_bits(Context const& ctx, Span const& span, std::uint32_t apart)
{
  stream_place const mine     = place_of(ctx, span, 1);
  stream_search* const search = span.memory.searches + mine.stream;
  std::uint32_t const number  = ctx.load(&search->number);
  std::uint32_t const peak    = ctx.load(&search->peak);
  std::uint32_t const own     = mine.active ? ctx.load(span.bits(mine.stream, mine.index)) : 0u;
  auto const chunk            = span.values(mine.stream, mine.index);
  TERSUM_NO_UNROLL
  for (std::uint32_t k = 0; k < stream_search::compared; ++k) {
    float const step = step_of_number(ctx, peak, number + (k + 1) * apart);
    if (step == 0.0f) { break; }
    std::uint32_t const bits = bits_of(code_chunk(ctx, chunk, own, step));
    std::uint32_t const sum  = ctx.warp_sum(bits);
    if (ctx.thread_rank() % 32 == 0 && sum > 0) {
      ctx.atomic_add(&search->bits[k][mine.index / stream_search::a_counter], sum);
    }
  }
  ctx.sync_block();
  if (ctx.thread_rank() != 0) { return; }
  std::uint32_t const blocks =
    (span.set.slots + stream_threads<Context> - 1) / stream_threads<Context>;
  if (!ctx.is_last(&search->arrived, blocks)) { return; }
  std::uint32_t const counters =
    (span.set.chunks_of(mine.stream) + stream_search::a_counter - 1) / stream_search::a_counter;
  std::uint32_t reached = 0;
  TERSUM_NO_UNROLL
  for (std::uint32_t half_of = 4; half_of > 0; half_of /= 2) {
    std::uint32_t const next = reached + half_of;
    if (step_of_number(ctx, peak, number + next * apart) == 0.0f) { continue; }
    std::uint64_t sum = 0;
    TERSUM_NO_UNROLL
    for (std::uint32_t i = 0; i < counters; ++i) { sum += ctx.load(&search->bits[next - 1][i]); }
    if (sum <= span.set.bits()) { reached = next; }
  }
  TERSUM_NO_UNROLL
  for (std::uint32_t k = 0; k < stream_search::compared; ++k) {
    TERSUM_NO_UNROLL
    for (std::uint32_t i = 0; i < counters; ++i) { ctx.store(&search->bits[k][i], 0u); }
  }
  ctx.store(&search->number, number + reached * apart);
}

//! @brief The steps of streams, and the bits of their chunks with both: those of the finer one in the place of the largest
//! magnitudes.
template <class Span, class Context>
TERSUM_BODY void size_streams(Context const& ctx, Span const& span)
{
  stream_place const mine = place_of(ctx, span, 1);
  if (!mine.active) { return; }
  stream_search const* const search = span.memory.searches + mine.stream;
  std::uint32_t const largest       = ctx.load(&search->peak);
  std::uint32_t const number        = ctx.load(&search->number);
  auto const chunk                  = span.values(mine.stream, mine.index);
  std::uint32_t const peak          = ctx.load(span.bits(mine.stream, mine.index));
  TERSUM_NO_UNROLL
  for (std::uint32_t finer = 0; finer < 2; ++finer) {
    float const step         = step_of_number(ctx, largest, number + finer);
    std::uint32_t const bits = bits_of(code_chunk(ctx, chunk, peak, step));
    if (mine.index == 0) { ctx.store(span.part(mine.stream) + finer, float_bits(step)); }
    if (finer == 0) {
      ctx.store(span.length(mine.stream, mine.index),
                static_cast<std::uint16_t>(peak < 0x7f800000u ? bits : stream_set::not_finite));
    } else {
      ctx.store(span.bits(mine.stream, mine.index), bits);
    }
  }
}

//! @brief Where the bits of chunks begin. All threads of a block call it, for one part.
//! @param flag  Called by a thread whose chunk has a value that was not finite.
template <class Span, class Context, class Flag>
TERSUM_BODY void find_chunks(
  Context const& ctx, Span const& span, std::uint32_t part, std::uint32_t chunks, Flag const& flag)
{
  constexpr std::uint32_t threads = stream_threads<Context>;
  std::uint32_t* const room       = static_cast<std::uint32_t*>(ctx.shared());
  std::uint32_t next              = 0;
  for (std::uint32_t first = 0; first < chunks; first += threads) {
    std::uint32_t const index = first + ctx.thread_rank();
    std::uint32_t length      = index < chunks ? ctx.load(span.length(part, index)) : 0u;
    if (length == stream_set::not_finite) {
      length = 0;
      flag();
    }
    std::uint32_t all         = 0;
    std::uint32_t const below = ctx.template block_scan<threads>(length, all, room);
    if (index < chunks) { ctx.store(span.bits(part, index), next + below); }
    next += all;
  }
}

//! @brief Gives chunks of a stream the finer step, one after the other in their turn, until one has no room, and finds where
//! the bits of chunks begin. A block has a stream.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void take_finer(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            Span const& span)
{
  constexpr std::uint32_t threads = stream_threads<Context>;
  std::uint32_t const stream      = ctx.block_rank();
  std::uint32_t const chunks      = span.set.chunks_of(stream);
  std::uint32_t* const room       = static_cast<std::uint32_t*>(ctx.shared());
  std::uint32_t const back        = span.set.turn(stream, 0, args.header->step);
  std::uint64_t used              = 0;
  for (std::uint32_t first = 0; first < chunks; first += threads) {
    std::uint32_t const index  = first + ctx.thread_rank();
    std::uint32_t const length = index < chunks ? ctx.load(span.length(stream, index)) : 0u;
    used += ctx.template block_sum<threads>(length == stream_set::not_finite ? 0u : length, room);
  }
  bool const is_step  = bits_float(ctx.load(span.part(stream) + 1)) > 0.0f;
  std::uint32_t taken = 0;
  for (std::uint32_t first = 0; is_step && first < chunks; first += threads) {
    std::uint32_t const turn  = first + ctx.thread_rank();
    std::uint32_t const index = turn < back ? turn + chunks - back : turn - back;
    std::uint32_t more        = 0;  // of 32 bits, modulo 2^32
    std::uint32_t length      = stream_set::not_finite;
    std::uint32_t next        = 0;
    if (turn < chunks) {
      length = ctx.load(span.length(stream, index));
      next   = ctx.load(span.bits(stream, index));
      more   = length == stream_set::not_finite ? 0u : next - length;
    }
    std::uint32_t all         = 0;
    std::uint32_t const below = ctx.template block_scan<threads>(more, all, room);
    std::int64_t const with =
      static_cast<std::int64_t>(used) + static_cast<std::int32_t>(below + more);
    bool const fits            = with <= static_cast<std::int64_t>(span.set.bits());
    std::uint32_t out          = 0;
    std::uint32_t const before = ctx.template block_scan<threads>(fits ? 0u : 1u, out, room);
    if (turn < chunks && fits && before == 0 && length != stream_set::not_finite) {
      ctx.store(span.length(stream, index), static_cast<std::uint16_t>(next));
    }
    std::uint32_t const here =
      ctx.template block_sum<threads>(turn < chunks && fits && before == 0 ? 1u : 0u, room);
    taken += here;
    if (out > 0) { break; }
    used =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(used) + static_cast<std::int32_t>(all));
  }
  if (ctx.thread_rank() == 0) { ctx.store(&span.memory.searches[stream].finer, taken); }
  ctx.sync_block();
  find_chunks(ctx, span, stream, chunks, [] {});
}

//! @brief Where the bits of chunks of all parts begin; sets the flag if a value was not finite. A block has a part.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void inspect_streams(Context const& ctx,
                                 exchange_args<Codec, Element> const& args,
                                 Span const& span)
{
  std::uint32_t const part = ctx.block_rank();
  find_chunks(
    ctx, span, part, span.set.chunks_of(part / span.set.copies), [&] { raise_flag(args); });
}

//! @brief Values to the bits of streams.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void write_streams(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               Span const& span)
{
  stream_place const mine = place_of(ctx, span, 1);
  if (!mine.active) { return; }
  std::uint32_t const length = ctx.load(span.length(mine.stream, mine.index));
  if (length == 0 || length == stream_set::not_finite) { return; }
  std::uint32_t* const words = span.part(mine.stream);
  auto const chunk           = span.values(mine.stream, mine.index);
  bool const finer           = has_finer_step(ctx, args, span, mine.stream, mine.index);
  float const step           = bits_float(ctx.load(words + (finer ? 1 : 0)));
  write_codes(ctx,
              chunk,
              code_chunk(ctx, chunk, Context::divide(1.0f, step)),
              finer,
              words + span.set.head,
              ctx.load(span.bits(mine.stream, mine.index)));
}

//! Values of a chunk of which a thread writes what is kept.
template <class Codec>
inline constexpr int values_kept_at_once = keeps_blocks<Codec> ? 32 : 4;

//! @brief What the codes lost, to the residual.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void keep_streams(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              Span const& span)
{
  stream_place const mine = place_of(ctx, span, Codec::chunk_size / values_kept_at_once<Codec>);
  if (mine.active && !step_is_poisoned(args)) {
    if constexpr (keeps_blocks<Codec>) {
      keep_block_of_stream(ctx, args, span, mine.stream, mine.index, mine.quad);
    } else {
      keep_quad(ctx, args, span, mine.stream, mine.index, mine.quad);
    }
  }
}

template <int Size, class Span, class Context>
TERSUM_BODY void add_streams(Context const& ctx, Span const& span)
{
  stream_place const mine = place_of(ctx, span, 1);
  if (mine.active) { add_chunk<Size>(ctx, span, mine.stream, mine.index); }
}

template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void return_streams(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                Span const& span)
{
  stream_place const mine = place_of(ctx, span, Codec::chunk_size / 4);
  if (mine.active) { return_quad(ctx, args, span, mine.stream, mine.index, mine.quad); }
}

}  // namespace tersum::inline v0::detail
