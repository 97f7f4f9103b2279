// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Five kernels that nvcc and NVRTC compile, of headers or of the file for other projects: no standard header, no name of `std`.

#if defined(TERSUM_ONE_FILE)
#include <tersum_kernels.hpp>
#else
#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#endif

using word   = unsigned;
using number = unsigned long long;

// Chunks of a warp, and of a block.
using chunk    = tersum::block_chunk<1024>;
using array    = tersum::block_values<1024>;
using rotation = tersum::block_hadamard<1024>;
using codes = tersum::block_codes<1024, tersum::stochastic_quantizer<4>, tersum::saturating_sum<4>>;
using large = tersum::block_chunk<2048>;
using spread = tersum::block_hadamard<2048>;
using wide   = tersum::block_codes<2048, tersum::nearest_quantizer<8>, tersum::saturating_sum<8>>;

__device__ tersum::chunk_step step()
{
  return tersum::make_chunk_step<tersum::partial_hadamard<1024>, tersum::stochastic_quantizer<4>>(
    .8f, 200, 2);
}

extern "C" __global__ void compress(float const* gradient, number count, number seed, word* payload)
{
  __shared__ rotation::storage shared;
  tersum::cuda_context const ctx;
  chunk const mine = chunk::of(ctx, count);
  float v[32];
  word words[codes::words];
  array::load(ctx, mine, gradient, v);
  rotation::forward(ctx, mine, tersum::sign_key(1, seed), shared, v);
  codes{}.encode(
    ctx, mine, tersum::dither_key{.seed = seed, .step = 1, .rank = 2}, step().encode, v, words);
  codes::store(ctx, mine, words, payload);
}

extern "C" __global__ void add(word const* other, number count, word* payload)
{
  number const i = number{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) { payload[i] = tersum::saturating_add<4>{}(payload[i], other[i]); }
}

extern "C" __global__ void apply(word const* summed, number count, number seed, float* mean)
{
  __shared__ rotation::storage shared;
  tersum::cuda_context const ctx;
  chunk const mine = chunk::of(ctx, count);
  float v[32];
  word words[codes::words];
  codes::load(ctx, mine, summed, words);
  codes::decode(ctx, words, 2, v);
  rotation::backward(ctx, mine, tersum::sign_key(1, seed), shared, v);
  for (float& x : v) { x *= step().decode; }
  array::store(ctx, mine, v, mean);
}

extern "C" __global__ void measure(float const* gradient, number count, float* norms)
{
  tersum::cuda_context const ctx;
  chunk const mine = chunk::of(ctx, count);
  float v[32];
  array::load(ctx, mine, gradient, v);
  float const norm = tersum::block_norm<1024>::squared(ctx, mine, nullptr, v);
  if (mine.exists() && mine.thread == 0) { norms[mine.chunk] = norm; }
}

extern "C" __global__ void cast(float const* gradient,
                                number count,
                                number seed,
                                tersum::half* rounded)
{
  __shared__ spread::storage shared;
  tersum::cuda_context const ctx;
  large const mine = large::of(ctx, count);
  float v[32];
  word words[wide::words];
  tersum::block_values<2048>::load(ctx, mine, gradient, v);
  spread::forward(ctx, mine, tersum::sign_key(1, seed), shared, v);
  wide{}.encode(ctx, mine, tersum::dither_key{}, 1.0f, v, words);
  wide::decode(ctx, words, 1, v);
  spread::synchronize(ctx);
  spread::backward(ctx, mine, tersum::sign_key(1, seed), shared, v);
  tersum::block_values<2048>::store(ctx, mine, v, rounded);
}
