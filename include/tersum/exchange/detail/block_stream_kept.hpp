// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What feedback keeps of chunks of an `entropy_codec` in blocks: kernel body parts. A thread has a block.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_kept.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/quantize/rice_codes.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief With what a chunk was coded: zeros if nothing of it was sent.
struct coded_step {
  float step;
  float inverse;

  //! What was sent of a value.
  template <class Context>
  [[nodiscard]] TERSUM_BODY float sent(Context const& ctx, float value) const
  {
    float const own = value_of_code(ctx, code_magnitude(ctx, value, inverse), step);
    return float_bits(value) >> 31 != 0 ? -own : own;
  }
};

template <class Codec, class Element, class Span, class Context>
[[nodiscard]] TERSUM_BODY coded_step step_of_chunk(Context const& ctx,
                                                   exchange_args<Codec, Element> const& args,
                                                   Span const& span,
                                                   std::uint32_t stream,
                                                   std::uint32_t index)
{
  if (ctx.load(span.length(stream, index)) == 0) { return {0.0f, 0.0f}; }
  bool const finer = has_finer_step(ctx, args, span, stream, index);
  float const step = bits_float(ctx.load(span.part(stream) + (finer ? 1 : 0)));
  return {step, Context::divide(1.0f, step)};
}

//! @brief The values of a thread's block.
template <class Chunk, class Context>
TERSUM_BODY void load_values_of_block(Context const& ctx,
                                      Chunk const& chunk,
                                      std::uint32_t block,
                                      float (&v)[32])
{
  TERSUM_UNROLL
  for (int i = 0; i < 8; ++i) {
    auto const quarter = static_cast<std::uint32_t>(i / 2) * (Chunk::quads / 4);
    word4 const four   = ctx.load(chunk.quad(quarter + 2 * block + static_cast<unsigned>(i % 2)));
    v[4 * i]           = bits_float(four.x);
    v[4 * i + 1]       = bits_float(four.y);
    v[4 * i + 2]       = bits_float(four.z);
    v[4 * i + 3]       = bits_float(four.w);
  }
}

//! @brief Writes a thread's block to the residual.
//! @param rank  As `draw_of_kept` takes it.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_kept_block(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t chunk,
                                  std::uint32_t rank,
                                  float const (&v)[32],
                                  residual_element<Codec>* to,
                                  std::uint32_t block)
{
  constexpr std::uint32_t quarter = Codec::chunk_size / 4;
  std::uint32_t const draw        = draw_of_kept(args, chunk, rank) + block * 8 * draw_stride;
  store_block(ctx, keep_block(context_arithmetic<Context>{}, v, draw, quarter), to, block);
}

//! @brief Writes what the codes of 32 values lost to the residual.
template <class Codec, class Element, class Span, class Context>
TERSUM_BODY void keep_block_of_stream(Context const& ctx,
                                      exchange_args<Codec, Element> const& args,
                                      Span const& span,
                                      std::uint32_t stream,
                                      std::uint32_t index,
                                      std::uint32_t block)
{
  constexpr std::uint32_t quarter     = Codec::chunk_size / 4;
  std::uint64_t const chunk           = span.set.chunk(stream, index);
  std::uint32_t const length          = ctx.load(args.table + chunk).length;
  auto* const residual                = args.residual + chunk;
  coded_step const coded              = step_of_chunk(ctx, args, span, stream, index);
  [[maybe_unused]] float const weight = weight_of_kept(args);
  [[maybe_unused]] byte_block before{};
  if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
    before = load_block(ctx, residual, block);
  }
  float v[32];
  load_values_of_block(ctx, span.values(stream, index), block, v);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    auto const at = static_cast<std::uint32_t>(i / 8) * quarter + static_cast<unsigned>(i % 8);
    float kept    = 0.0f;
    if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
      kept = weighed<Codec>(ctx, weight, kept_of_block(ctx, before, i));
    }
    float const lost = Context::subtract(v[i], coded.sent(ctx, v[i]));
    float const next = args.codec.feedback.after(ctx, v[i], lost, kept);
    v[i]             = at + 8 * block < length ? next : 0.0f;
  }
  store_kept_block(ctx, args, chunk, args.rank, v, residual, block);
}

}  // namespace tersum::inline v0::detail
