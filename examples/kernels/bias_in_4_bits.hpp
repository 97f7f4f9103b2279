// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One pass over the output of a layer: the bias is added, and the sums are rotated and rounded to 4 bits.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

namespace bias_in_4_bits {

using chunk     = tersum::block_chunk<1024>;
using array     = tersum::block_values<1024>;
using rotation  = tersum::block_hadamard<1024>;
using quantizer = tersum::stochastic_quantizer<4>;
using codes     = tersum::block_codes<1024, quantizer, tersum::saturating_sum<4>>;

//! Codes of up to 7 stand for up to 2.75 root mean squares of a chunk; what is larger, 6 of 1000 normal values, is cut.
inline constexpr float reach = 2.75f;

//! Launched on `chunk::blocks(count)` blocks of `chunk::block_threads` threads.
//! @param width    Values of a row, and of the bias: a multiple of 1024.
//! @param payload  Receives `chunk::words<4>(count)` words.
//! @param steps    Receives for each chunk what the inverse rotation of its codes is to be multiplied by.
template <tersum::block_context Context>
TERSUM_BODY void encode(Context const& ctx,
                        rotation::storage& shared,
                        tersum::half const* values,
                        float const* bias,
                        std::uint64_t count,
                        std::uint64_t width,
                        tersum::dither_key const& draws,
                        std::uint64_t signs,
                        std::uint32_t* payload,
                        float* steps)
{
  chunk const mine = chunk::of(ctx, count);
  chunk of_bias    = mine;
  of_bias.offset   = mine.offset % width;
  float v[32], b[32];
  array::load(ctx, mine, values, v);
  array::load(ctx, of_bias, bias, b);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { v[i] = Context::add(v[i], b[i]); }

  //! [norm]
  float const norm = Context::square_root(tersum::block_norm<1024>::squared(ctx, mine, nullptr, v));
  //! [norm]
  auto const step = tersum::make_chunk_step<tersum::partial_hadamard<1024>, quantizer>(
    Context::multiply(norm, reach / 32 / quantizer::max_level), norm, 1);
  rotation::forward(ctx, mine, signs, shared, v);
  std::uint32_t words[codes::words];
  codes{}.encode(ctx, mine, draws, step.encode, v, words);
  codes::store(ctx, mine, words, payload);
  if (mine.exists() && mine.thread == 0) { ctx.store(steps + mine.chunk, step.decode); }
}

}  // namespace bias_in_4_bits
