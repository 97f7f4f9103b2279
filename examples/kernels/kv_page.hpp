// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A page of a KV cache in 4 bits. Keys of 128 values are rotated and rounded to the levels of Lloyd and Max for normal values, and
//! attention reads the codes: products of a rotated query with rotated keys are those of query and keys.

#pragma once

#include <tersum/block/block_values.hpp>
#include <tersum/quantize/block_levels.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/block_hadamard.hpp>

namespace kv_page {

using key      = tersum::block_chunk<128>;  // four threads, each with 32 of its values
using array    = tersum::block_values<128>;
using rotation = tersum::block_hadamard<128>;
using levels   = tersum::block_levels<128, tersum::lloyd_max<4>>;

//! Keys in codes. The kernels are launched on `key::blocks(128 * tokens)` blocks of `key::block_threads` threads.
struct page {
  std::uint64_t tokens;
  std::uint64_t signs;   // of all keys and queries
  std::uint32_t* codes;  // 16 for each key, aligned to 16 bytes
  float* scales;         // what the levels of each key are to be multiplied by
};

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
  array::load(ctx, mine, keys, v);
  rotation::forward(ctx, alike, to.signs, shared, v);
  //! [levels]
  std::uint32_t words[levels::words];
  float const scale = levels::encode(ctx, mine, nullptr, v, words);
  levels::store(ctx, mine, words, to.codes);
  //! [levels]
  if (mine.exists() && mine.thread == 0) { ctx.store(to.scales + mine.chunk, scale); }
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
  float q[32], k[32] = {}, sum = 0;
  array::load(ctx, alike, query, q);
  rotation::forward(ctx, alike, by.signs, shared, q);
  std::uint32_t words[levels::words];
  levels::load(ctx, mine, by.codes, words);
  levels::add(ctx, words, 1.0f, k);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { sum = Context::fma(q[i], k[i], sum); }
  sum = Context::add(sum, ctx.shuffle_xor(sum, 1u));
  sum = Context::add(sum, ctx.shuffle_xor(sum, 2u));
  if (!mine.exists() || mine.thread != 0) { return; }
  float const scale = Context::multiply(ctx.load(by.scales + mine.chunk), 1.0f / 128);
  ctx.store(products + mine.chunk, Context::multiply(sum, scale));
}

}  // namespace kv_page
