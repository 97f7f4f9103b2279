// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A cast to NVFP4 whose mean over seeds is the value: blocks of 16 are multiplied by random signs and a Hadamard matrix, and rounded at
//! random to E2M1 under a scale in E4M3.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/thread_hadamard.hpp>
#include <tersum_baselines/float_levels.hpp>

namespace cast_to_nvfp4 {

//! The E2M1 number next to x, in 0 .. 6, at random: the lower one if u, from 0 to 1, is small.
TERSUM_INLINE std::uint32_t round_at_random(float x, float u)
{
  float const per_unit     = x < 2 ? 2.0f : x < 4 ? 1.0f : 0.5f;  // numbers lie .5, 1 and 2 apart
  std::uint32_t const from = x < 2 ? 0u : x < 4 ? 2u : 4u;
  auto const code          = from + static_cast<std::uint32_t>(x * per_unit + u);
  return code < 7 ? code : 7u;
}

//! A thread casts 16 values.
//! @param blocks   Blocks of 16 values.
//! @param largest  No rotated magnitude of the tensor exceeds it: four times the largest of a value.
//! @param codes    Receives 8 bytes for each block, the first value in the lowest bits.
//! @param scales   Receives the E4M3 scale of each block. A number of a block stands for number * scale * largest / (6 * 448).
template <tersum::block_context Context>
TERSUM_BODY void cast(Context const& ctx,
                      float const* values,
                      std::uint64_t blocks,
                      float largest,
                      std::uint64_t signs,
                      std::uint64_t seed,
                      std::uint32_t* codes,
                      std::uint8_t* scales)
{
  std::uint64_t const block =
    std::uint64_t{ctx.block_rank()} * ctx.block_threads() + ctx.thread_rank();
  if (block >= blocks) { return; }
  float v[16];
  TERSUM_UNROLL
  for (int i = 0; i < 16; i += 4) {
    tersum::word4 const read =
      ctx.load(reinterpret_cast<tersum::word4 const*>(values + 16 * block + i));
    v[i]     = Context::from_bits(read.x);
    v[i + 1] = Context::from_bits(read.y);
    v[i + 2] = Context::from_bits(read.z);
    v[i + 3] = Context::from_bits(read.w);
  }
  //! [rotate]
  tersum::thread_hadamard<16>::forward(ctx, block, signs, v);
  //! [rotate]
  float magnitude = 0;  // of the values times 4, as butterflies leave them
  for (float x : v) { magnitude = ::fmaxf(magnitude, ::fabsf(x)); }
  std::uint32_t const scale =
    tersum::e4m3_scale::encode(Context::divide(0.25f * magnitude, largest));
  float const stands_for = Context::multiply(tersum::e4m3_scale::decode(scale), largest);  // of 6
  float const to_numbers = stands_for > 0 ? Context::divide(1.5f, stands_for) : 0.0f;
  auto const random      = tersum::philox4x32<7>(
    {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32)}}, seed);
  std::uint32_t words[2] = {};
  TERSUM_UNROLL
  for (int i = 0; i < 16; ++i) {
    float const u =
      static_cast<float>(random.word[i / 4] >> (8 * (i % 4)) & 255u) * 0x1p-8f + 0x1p-9f;
    std::uint32_t const sign = Context::bits(v[i]) >> 31 << 3;
    words[i / 8] |= (sign | round_at_random(::fabsf(Context::multiply(v[i], to_numbers)), u))
                    << (4 * (i % 8));
  }
  ctx.store(codes + 2 * block, words[0]);
  ctx.store(codes + 2 * block + 1, words[1]);
  ctx.store(scales + block, static_cast<std::uint8_t>(scale));
}

}  // namespace cast_to_nvfp4
