// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whole chunks stored as rows, which are copied out of shared memory: kernel body parts.

#pragma once

#include <tersum/block/block_load.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>

namespace tersum::inline v0::detail {

//! @brief Whether a thread has rows copied out of shared memory, as from sm_90 on.
template <class Context>
inline constexpr bool copies_rows = requires(Context const& ctx, void* row)
{
  ctx.show_row();
  ctx.copy_row(row, row, 0u);
  ctx.end_rows();
  ctx.is_elected();
};

//! @brief Whether kernels that decode store whole chunks as rows. Behind a rotation a thread ends with eight neighbours, and of floats sixteen
//! bytes of each thread fill half a sector. In a metric threads would need more registers.
template <bool Edge, class Codec, class Element, class Context>
inline constexpr bool stores_rows =
  !Edge && sizeof(Element) == 4 && copies_rows<Context> && !in_metric<Codec> &&
  (Codec::rotates_chunks || Codec::rotates_in_memory);

//! @brief Puts the loaded arrangement into shared memory in the order of the gradient, behind the last use of `storage`, that of the chunk's tile.
template <class Codec, class Context>
TERSUM_BODY void put_row(Context const& ctx,
                         own_chunk<Codec> const& mine,
                         float* storage,
                         float const (&v)[32])
{
  own_chunk<Codec>::hadamard::synchronize(ctx);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    store_quarter<false>(ctx, mine, true, v + 8 * r, storage + mine.first, r);
  }
  ctx.show_row();
  own_chunk<Codec>::hadamard::synchronize(ctx);
}

//! @brief Whether this thread is the one of its chunk that has the row copied.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY bool has_row(Context const& ctx, own_chunk<Codec> const& mine)
{
  if constexpr (own_chunk<Codec>::hadamard::threads < 32) {
    return mine.active && mine.thread == 0;
  } else {
    return (own_chunk<Codec>::in_warp || mine.thread < 32) && ctx.is_elected();
  }
}

//! @brief Has the row of this thread's chunk copied, which `end_rows` must end.
template <class Codec, class Context>
TERSUM_BODY void copy_row(Context const& ctx,
                          float* to,
                          own_chunk<Codec> const& mine,
                          float const* storage)
{
  ctx.copy_row(to + mine.offset, storage + mine.first, Codec::chunk_size * 4u);
}

//! @brief `store_coordinates`, as a row where that is how whole chunks are stored.
//! @param storage  Of the chunk's tile. It is free for whoever meets all of its threads at a barrier.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void store_row(Context const& ctx,
                           Element* to,
                           own_chunk<Codec> const& mine,
                           [[maybe_unused]] float* storage,
                           float const (&v)[32])
{
  if constexpr (stores_rows<Edge, Codec, Element, Context>) {
    put_row(ctx, mine, storage, v);
    if (has_row(ctx, mine)) {
      copy_row(ctx, to, mine, storage);
      ctx.end_rows();
    }
  } else {
    store_coordinates<Edge>(ctx, to, mine, v);
  }
}

}  // namespace tersum::inline v0::detail
