// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals in blocks between memory and registers: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The block of a thread.
template <class Context, int Size>
[[nodiscard]] TERSUM_BODY byte_block load_block(Context const& ctx,
                                                byte_chunk<Size> const* chunk,
                                                unsigned thread)
{
  byte_block block;
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    word4 const four =
      ctx.load(reinterpret_cast<word4 const*>(chunk->codes + thread * 8) + half_of);
    block.words[4 * half_of]     = four.x;
    block.words[4 * half_of + 1] = four.y;
    block.words[4 * half_of + 2] = four.z;
    block.words[4 * half_of + 3] = four.w;
  }
  block.step = ctx.load(chunk->steps + thread);
  return block;
}

//! @brief Writes the block of a thread.
template <class Context, int Size>
TERSUM_BODY void store_block(Context const& ctx,
                             byte_block const& block,
                             byte_chunk<Size>* chunk,
                             unsigned thread)
{
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    ctx.store(reinterpret_cast<word4*>(chunk->codes + thread * 8) + half_of,
              word4{block.words[4 * half_of],
                    block.words[4 * half_of + 1],
                    block.words[4 * half_of + 2],
                    block.words[4 * half_of + 3]});
  }
  ctx.store(chunk->steps + thread, block.step);
}

//! @brief What is kept of eight neighbours.
//! @param within  The first of them in the chunk, a multiple of 8.
template <class Context, int Size>
TERSUM_BODY void load_eight_of_block(Context const& ctx,
                                     byte_chunk<Size> const* chunk,
                                     int within,
                                     float (&v)[8])
{
  using kept = byte_chunk<Size>;
  byte_block block{};
  block.words[0] = ctx.load(chunk->codes + kept::word_of(within));
  block.words[1] = ctx.load(chunk->codes + (kept::word_of(within) + 1));
  block.step     = ctx.load(chunk->steps + kept::block_of(within));
  TERSUM_UNROLL
  for (int j = 0; j < 8; ++j) { v[j] = kept_of_block(context_arithmetic<Context>{}, block, j); }
}

//! @brief What is kept of four neighbours, as the bits of floats.
//! @param quad  Their number among the fours of the chunk.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, int Size>
[[nodiscard]] TERSUM_INLINE word4 load_four_of_block(Machine const& machine,
                                                     byte_chunk<Size> const* chunk,
                                                     std::uint32_t quad)
{
  using kept       = byte_chunk<Size>;
  auto const first = static_cast<int>(4 * quad);
  byte_block block{};
  block.words[0] = machine.load(chunk->codes + kept::word_of(first));
  block.step     = machine.load(chunk->steps + kept::block_of(first));
  return {float_bits(kept_of_block(machine, block, 0)),
          float_bits(kept_of_block(machine, block, 1)),
          float_bits(kept_of_block(machine, block, 2)),
          float_bits(kept_of_block(machine, block, 3))};
}

}  // namespace tersum::inline v0::detail
