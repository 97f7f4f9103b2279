// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The Hadamard transform of a chunk that is spread over the registers of a warp or of a block: kernel body.

#pragma once

#include <tersum/chunk/chunk_order.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <concepts>

namespace tersum::inline v0::detail {

//! @brief Butterflies over the bits First .. Last-1 of the index of an array of 32, ascending.
template <int First, int Last, class Context>
TERSUM_BODY void butterflies(Context const&, float (&v)[32])
{
  TERSUM_UNROLL
  for (int level = First; level < Last; ++level) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      if ((i >> level & 1) == 0) {
        float const a     = v[i];
        float const b     = v[i | 1 << level];
        v[i]              = Context::add(a, b);
        v[i | 1 << level] = Context::subtract(a, b);
      }
    }
  }
}

//! @brief A chunk of `Size` in the registers of Size/32 threads, 32 coordinates each, in one of two arrangements.
//!
//! *Loaded*: register 8 r + j of thread t holds coordinate r Size/4 + 8 t + j, so that loads take 32 bytes at a time.
//! *Wire*: register k of thread t holds the coordinate at wire position 32 t + k.
//! `to_wire` goes from the first to the second through shared memory and transforms on the way, `to_loaded` goes back.
//! Neither scales: both together multiply by Size.
//!
//! The order of the butterflies fixes the rounding and is part of the wire format. Forward: index bits 0, 1, 2, the two
//! highest, then 8 upwards, then 3 to 7. Backward: 3 to 7, then 8 upwards, then 0, 1, 2 and the two highest.
//!
//! Up to 1024 coordinates a warp holds 1024/Size chunks and only warps synchronize; above, a block holds one chunk. All
//! threads of the warp (block) must call. The storage may be reused after the next barrier.
//!
//! @tparam Size    Coordinates in a chunk.
//! @tparam Rotate  false exchanges without transforming.
template <int Size, bool Rotate>
struct block_hadamard {
  static constexpr int log            = log2_exact(Size);
  static constexpr int threads        = Size / 32;  //!< Threads that share a chunk.
  static constexpr bool in_warp       = Size <= 1024;
  static constexpr int tile           = in_warp ? 1024 : Size;  //!< Coordinates that share storage.
  static constexpr int storage_floats = tile + tile / 8 + tile / 32;  //!< Shared memory of a tile.
  static constexpr int wire_levels =
    log < 10 ? log - 5 : 5;  //!< Butterflies of the wire arrangement.
  static constexpr int middle_levels = log > 10 ? log - 10 : 0;  //!< Butterflies between the two.
  static constexpr int middle_fill   = 5 - middle_levels;

  //! Where a coordinate of the tile lies in storage: shifted so that neither arrangement meets bank conflicts. It is
  //! additive over thread and register, so that addresses are a base and a constant.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_INLINE static constexpr Integer slot(Integer e) noexcept
  {
    return e + e / 32 * 4 + e / 256 * 8;
  }

  //! The coordinate in register 8 r + j of thread t, loaded arrangement.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned loaded(unsigned t,
                                                               unsigned r,
                                                               unsigned j) noexcept
  {
    return r * (Size / 4) + t * 8 + j;
  }

  //! The coordinate in register k of thread t between the two arrangements.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned middle(unsigned t, unsigned k) noexcept
  {
    constexpr int low = 8 - middle_fill;  // index bits below the filling ones
    return (t & ((1u << low) - 1)) | k << low | t >> low << (log - 2);
  }

  //! @param t      This thread's place in its chunk, 0 .. threads-1.
  //! @param first  Its chunk's first coordinate in the tile.
  template <class Context>
  TERSUM_BODY static void to_wire(
    Context const& ctx, float (&v)[32], float* storage, unsigned t, unsigned first)
  {
    if constexpr (Rotate) { butterflies<0, 5>(ctx, v); }
    store_loaded(ctx, v, storage, t, first);
    synchronize(ctx);
    if constexpr (middle_levels > 0 && Rotate) { transform_middle(ctx, v, storage, t); }
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) { v[k] = storage[slot(first + wire(t, 0)) + wire_stride(k)]; }
    if constexpr (Rotate) { butterflies<0, wire_levels>(ctx, v); }
  }

  //! @tparam LowDone, HighDone  Wire butterflies that are done already: of the lowest and the highest register bits.
  template <int LowDone = 0, int HighDone = 0, class Context>
  TERSUM_BODY static void to_loaded(
    Context const& ctx, float (&v)[32], float* storage, unsigned t, unsigned first)
  {
    if constexpr (Rotate) { butterflies<LowDone, wire_levels - HighDone>(ctx, v); }
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) { storage[slot(first + wire(t, 0)) + wire_stride(k)] = v[k]; }
    synchronize(ctx);
    if constexpr (middle_levels > 0 && Rotate) { transform_middle(ctx, v, storage, t); }
    TERSUM_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      TERSUM_UNROLL
      for (unsigned j = 0; j < 8; j += 4) {
        word4 const four = ctx.load(reinterpret_cast<word4 const*>(
          storage + slot(first + loaded(t, 0, 0)) + slot(loaded(0, r, j))));
        v[8 * r + j]     = Context::from_bits(four.x);
        v[8 * r + j + 1] = Context::from_bits(four.y);
        v[8 * r + j + 2] = Context::from_bits(four.z);
        v[8 * r + j + 3] = Context::from_bits(four.w);
      }
    }
    if constexpr (Rotate) { butterflies<0, 5>(ctx, v); }
  }

  //! The barrier between two uses of the storage.
  template <class Context>
  TERSUM_BODY static void synchronize(Context const& ctx)
  {
    if constexpr (in_warp) {
      ctx.sync_warp();
    } else {
      ctx.sync_block();
    }
  }

 private:
  using order = chunk_order<Size>;

  [[nodiscard]] TERSUM_INLINE static constexpr unsigned wire(unsigned t, unsigned k) noexcept
  {
    return order::coordinate(32 * t + k);
  }

  //! The distance in storage from register 0 to register k, the same for every thread.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned wire_stride(unsigned k) noexcept
  {
    return slot(wire(0, k));
  }

  template <class Context>
  TERSUM_BODY static void store_loaded(
    Context const& ctx, float const (&v)[32], float* storage, unsigned t, unsigned first)
  {
    TERSUM_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      TERSUM_UNROLL
      for (unsigned j = 0; j < 8; j += 4) {
        ctx.store(
          reinterpret_cast<word4*>(storage + slot(first + loaded(t, 0, 0)) + slot(loaded(0, r, j))),
          word4{Context::bits(v[8 * r + j]),
                Context::bits(v[8 * r + j + 1]),
                Context::bits(v[8 * r + j + 2]),
                Context::bits(v[8 * r + j + 3])});
      }
    }
  }

  // Every thread writes back where it read, so one barrier after it is enough.
  template <class Context>
  TERSUM_BODY static void transform_middle(Context const& ctx,
                                           float (&v)[32],
                                           float* storage,
                                           unsigned t)
  {
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) { v[k] = storage[slot(middle(t, 0)) + slot(middle(0, k))]; }
    butterflies<middle_fill, 5>(ctx, v);
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) { storage[slot(middle(t, 0)) + slot(middle(0, k))] = v[k]; }
    synchronize(ctx);
  }
};

}  // namespace tersum::inline v0::detail
