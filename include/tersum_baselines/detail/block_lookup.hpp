// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! From codes to indices, and from sums to codes, for `lookup_sum`. Both executors run these items of work; on a GPU each
//! thread has one.

#pragma once

#include <tersum/block/chunk_step.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Four words of indices from the codes that they number.
template <class Sum>
struct pack_item {
  word4 const* codes;
  word4* indices;

  TERSUM_EXEC_CHECK_DISABLE
  template <class Context>
  TERSUM_INLINE void operator()(Context const& ctx, std::size_t at) const
  {
    std::uint32_t words[4 * Sum::code_words];
    TERSUM_UNROLL
    for (int i = 0; i < Sum::code_words; ++i) {
      word4 const four = ctx.load(codes + at * Sum::code_words + i);
      words[4 * i]     = four.x;
      words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z;
      words[4 * i + 3] = four.w;
    }
    ctx.store(indices + at,
              word4{Sum::pack(words),
                    Sum::pack(words + Sum::code_words),
                    Sum::pack(words + 2 * Sum::code_words),
                    Sum::pack(words + 3 * Sum::code_words)});
  }
};

//! @brief Makes four words of summed codes. The first item of a chunk also divides the chunk's step by the number of
//! contributions that arrived.
template <class Sum, int ChunkSize>
struct unpack_item {
  word4 const* sums;
  word4* codes;
  chunk_step* steps;
  std::uint16_t const* arrived;  // one a chunk
  int world;

  static constexpr std::size_t chunk_items = ChunkSize / Sum::lanes::lanes / 4;

  TERSUM_EXEC_CHECK_DISABLE
  template <class Context>
  TERSUM_INLINE void operator()(Context const& ctx, std::size_t at) const
  {
    std::size_t const chunk = at / chunk_items;
    // A chunk without a step has sent zeros, which are no values of the table, so that its indices mean nothing.
    bool const has_step = ctx.load(&steps[chunk].encode) != 0.0f;
    word4 const four    = ctx.load(sums + at);
    ctx.store(codes + at,
              has_step ? word4{Sum::unpack(four.x, world),
                               Sum::unpack(four.y, world),
                               Sum::unpack(four.z, world),
                               Sum::unpack(four.w, world)}
                       : word4{0, 0, 0, 0});
    if (at % chunk_items == 0) {
      int const here     = ctx.load(arrived + chunk);
      float const factor = here == 0 ? 0.0f : static_cast<float>(world) / static_cast<float>(here);
      ctx.store(&steps[chunk].decode, ctx.load(&steps[chunk].decode) * factor);
    }
  }
};

}  // namespace tersum::inline v0::detail
