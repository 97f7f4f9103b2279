// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A cast to NVFP4 whose mean over seeds is the value: blocks of 16 are multiplied by random signs and a Hadamard matrix, and rounded at
//! random to E2M1 under a scale in E4M3.

#pragma once

#include <tersum/block/thread_values.hpp>
#include <tersum/quantize/thread_scaled_floats.hpp>
#include <tersum/rotate/thread_hadamard.hpp>

namespace cast_to_nvfp4 {

using rotation = tersum::thread_hadamard<16>;
using floats   = tersum::thread_nvfp4<tersum::independent>;

//! A thread casts 16 values.
//! @param blocks  Blocks of 16 values.
//! @param unit    What numbers are multiplied by besides the scale of their block. No rotated magnitude exceeds 6 * 448 of it, and they
//!                are up to 4 times the largest of a value.
//! @param codes   Receives 8 bytes for each block, the first value in the lowest bits. Aligned to that.
//! @param scales  Receives the E4M3 scale of each block.
template <tersum::block_context Context, tersum::gradient_element Element>
TERSUM_BODY void cast(Context const& ctx,
                      Element const* values,
                      std::uint64_t blocks,
                      float unit,
                      std::uint64_t signs,
                      tersum::dither_key const& draws,
                      std::uint32_t* codes,
                      std::uint8_t* scales)
{
  std::uint64_t const block =
    std::uint64_t{ctx.block_rank()} * ctx.block_threads() + ctx.thread_rank();
  if (block >= blocks) { return; }
  //! [load]
  float v[16];
  tersum::thread_values<16>::load(ctx, values + 16 * block, v);
  //! [load]
  //! [rotate]
  rotation::forward(ctx, block, signs, v);  // which multiplies norms by 4
  //! [rotate]
  //! [encode]
  std::uint32_t words[floats::words];
  std::uint32_t const scale = floats::encode(ctx, block, draws, 4 * unit, v, words);
  //! [encode]
  floats::codes::store(ctx, words, codes + 2 * block);
  ctx.store(scales + block, static_cast<std::uint8_t>(scale));
}

}  // namespace cast_to_nvfp4
