// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A page of a KV cache in 4 bits. Keys of 128 values are rotated and rounded to the levels of Lloyd and Max for normal values, and
//! attention reads the codes: products of a rotated query with rotated keys are those of query and keys.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_load.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/block_hadamard.hpp>

namespace kv_page {

using key      = tersum::block_chunk<128>;  // four threads, each with 32 of its values
using rotation = tersum::block_hadamard<128>;
using levels   = tersum::lloyd_max<4>;

//! Keys in codes. The kernels take one of `tokens` keys with four threads, and are launched on `key::blocks(128 * tokens)` blocks of
//! `key::block_threads` threads.
struct page {
  std::uint64_t tokens;
  std::uint64_t signs;   // of all keys and queries
  tersum::word4* codes;  // four for each key
  float* scales;         // what the levels of each key are to be multiplied by
};

template <tersum::block_context Context>
TERSUM_BODY float sum_of_key(Context const& ctx, float x)
{
  x = Context::add(x, ctx.shuffle_xor(x, 1u));
  return Context::add(x, ctx.shuffle_xor(x, 2u));
}

template <tersum::block_context Context>
TERSUM_BODY void write(Context const& ctx,
                       rotation::storage& shared,
                       tersum::half const* keys,
                       page const& to)
{
  key const mine = key::of(ctx, 128 * to.tokens);
  key alike      = mine;
  alike.chunk    = 0;  // the same signs
  float v[32];
  load_chunk(ctx, mine, keys, v);
  rotation::forward(ctx, alike, to.signs, shared, v);
  float square = 0, product = 0;
  for (float const x : v) { square = Context::fma(x, x, square); }
  square                 = sum_of_key(ctx, square);
  bool const any         = square > 0;
  float const to_rms     = any ? Context::square_root(Context::divide(128.0f, square)) : 0.0f;
  std::uint32_t words[4] = {};
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    std::uint32_t const code = levels{}.encode(Context::multiply(v[i], to_rms));
    product                  = Context::fma(v[i], levels{}.decode(code), product);
    words[i / 8] |= code << (4 * (i % 8));
  }
  product = sum_of_key(ctx, product);
  if (!mine.exists()) { return; }
  ctx.store(to.codes + 4 * mine.chunk + mine.thread,
            tersum::word4{words[0], words[1], words[2], words[3]});
  // Under the root mean square products would be too small in the mean over rotations.
  float const scale = any ? Context::divide(square, product) : 0.0f;
  if (mine.thread == 0) { ctx.store(to.scales + mine.chunk, scale); }
}

//! The product of the query with each key.
template <tersum::block_context Context>
TERSUM_BODY void multiply(Context const& ctx,
                          rotation::storage& shared,
                          float const* query,
                          page const& by,
                          float* products)
{
  key const mine = key::of(ctx, 128 * by.tokens);
  key alike      = mine;
  alike.chunk = alike.offset = 0;
  float q[32], sum = 0;
  load_chunk(ctx, alike, query, q);
  rotation::forward(ctx, alike, by.signs, shared, q);
  tersum::word4 words{};
  if (mine.exists()) { words = ctx.load(by.codes + 4 * mine.chunk + mine.thread); }
  std::uint32_t const of_eight[4] = {words.x, words.y, words.z, words.w};
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    sum = Context::fma(q[i], levels{}.decode(of_eight[i / 8] >> (4 * (i % 8)) & 15u), sum);
  }
  sum = Context::multiply(sum_of_key(ctx, sum), 1.0f / 128);
  if (!mine.exists() || mine.thread != 0) { return; }
  ctx.store(products + mine.chunk, Context::multiply(sum, ctx.load(by.scales + mine.chunk)));
}

}  // namespace kv_page
