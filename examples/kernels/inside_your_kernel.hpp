// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of examples/04_inside_your_kernel.cu, as functions of a block context: what runs on a GPU runs in a test without one.

#pragma once

#include <tersum/block/block_values.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace inside_your_kernel {

using chunk     = tersum::block_chunk<1024>;
using array     = tersum::block_values<1024>;
using rotation  = tersum::block_hadamard<1024>;
using quantizer = tersum::stochastic_quantizer<4>;
using reducer   = tersum::saturating_sum<4>;
using codes     = tersum::block_codes<1024, quantizer, reducer>;

//! What a step of the training needs, the same on every rank but for `draws.rank`.
struct step_settings {
  float unscale;             // 1 / the loss scale
  float clip;                // largest magnitude of an unscaled coordinate
  float rate;                // of learning
  tersum::chunk_step scale;  // of every chunk
  tersum::dither_key draws;  // seed, step, rank
  std::uint64_t signs;       // sign_key(step, seed)
};

//! A pass over the gradient that mixed precision makes anyway (unscale, clip, look for overflows) leaves it in 4-bit codes.
template <tersum::block_context Context>
TERSUM_BODY void compress(Context const& ctx,
                          rotation::storage& shared,
                          step_settings const& now,
                          tersum::half const* gradient,
                          std::uint64_t count,
                          std::uint32_t* overflow,
                          std::uint32_t* payload)
{
  // [load]
  chunk const mine = chunk::of(ctx, count);
  float v[32];
  array::load(ctx, mine, gradient, v);
  // [load]
  bool finite = true;
  TERSUM_UNROLL
  for (float& x : v) {
    finite = finite && Context::subtract(x, x) == 0.0f;
    x      = Context::multiply(x, now.unscale);
    x      = x > now.clip ? now.clip : x < -now.clip ? -now.clip : x;
  }
  if (!finite) { ctx.store(overflow, 1u); }

  // [compress]
  rotation::forward(ctx, mine, now.signs, shared, v);
  std::uint32_t words[codes::words];
  codes{}.encode(ctx, mine, now.draws, now.scale.encode, v, words);
  codes::store(ctx, mine, words, payload);
  // [compress]
}

//! Payloads of all ranks, one after the other, to the next parameters: added, decoded, and applied, in one pass.
template <tersum::block_context Context>
TERSUM_BODY void update(Context const& ctx,
                        rotation::storage& shared,
                        step_settings const& now,
                        std::uint32_t const* payloads,
                        int ranks,
                        std::uint64_t count,
                        std::uint32_t const* overflow,
                        float* parameters)
{
  if (ctx.load(overflow) != 0) { return; }  // a step that is not taken
  chunk const mine = chunk::of(ctx, count);
  std::uint32_t sum[codes::words];
  codes::load(ctx, mine, payloads, sum);
  for (int rank = 1; rank < ranks; ++rank) {
    std::uint32_t words[codes::words];
    payloads += chunk::words<reducer::lane_bits>(count);
    codes::load(ctx, mine, payloads, words);
    TERSUM_UNROLL
    for (int w = 0; w < codes::words; ++w) { sum[w] = reducer::op{}(sum[w], words[w]); }
  }
  // [decode]
  float v[32], parameter[32];
  codes::decode(ctx, sum, ranks, v);
  rotation::backward(ctx, mine, now.signs, shared, v);
  // [decode]
  array::load(ctx, mine, parameters, parameter);
  float const rate = Context::multiply(now.rate, now.scale.decode);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { parameter[i] = Context::fma(-rate, v[i], parameter[i]); }
  array::store(ctx, mine, parameter, parameters);
}

}  // namespace inside_your_kernel
