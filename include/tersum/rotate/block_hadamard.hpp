// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The Hadamard transform of a chunk that is spread over the registers of a warp or of a block: kernel body.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/rotate/detail/tile_columns.hpp>
#include <tersum/rotate/thread_hadamard.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief The randomized Hadamard transform of a chunk in registers: `partial_hadamard` inside a kernel.
//!
//! `forward` flips random signs, transforms, and brings the registers from the *loaded* to the *wire* arrangement of
//! `block_chunk`, through shared memory; `backward` goes back. Neither scales: values grow by the square root of Size each time, and
//! `make_chunk_step` allows for it. The order of the butterflies fixes the rounding and is part of the wire format. Forward: index bits 0,
//! 1, 2, the two highest, then 8 upwards, then 3 to 7. Backward: 3 to 7, then 8 upwards, then 0, 1, 2 and the two highest.
//!
//! @par Example
//! @snippet examples/kernels/inside_your_kernel.hpp compress
//!
//! On sm_90 a value takes 14 instructions, its sign included.
//!
//! All threads of the warp (above 1024 coordinates, of the block) must call. The storage is free after `synchronize`.
//! @tparam Size    Coordinates in a chunk.
//! @tparam Rotate  false goes from arrangement to arrangement and does nothing else: `no_rotation`.
template <int Size, bool Rotate = true>
struct block_hadamard {
  using chunk = block_chunk<Size>;

  static constexpr int log            = detail::log2_exact(Size);
  static constexpr int threads        = chunk::threads;  //!< Threads that share a chunk.
  static constexpr bool in_warp       = chunk::in_warp;
  static constexpr int tile           = chunk::tile;  //!< Coordinates that share storage.
  static constexpr int storage_floats = tile + tile / 8 + tile / 32;  //!< Shared memory of a tile.
  static constexpr int wire_levels =
    log < 10 ? log - 5 : 5;  //!< Levels of butterflies that are done in the wire arrangement.
  static constexpr int middle_levels =
    log > 10 ? log - 10 : 0;  //!< And between the two arrangements.

  //! @brief The shared memory of a block: 18.5 KiB, and for chunks above 1024 coordinates 4.625 bytes per coordinate. A
  //! kernel may have 48 KiB without asking for more, which is enough for chunks of 8192 coordinates.
  struct alignas(16) storage {
    float of_tile[detail::extent(chunk::block_tiles)][detail::extent(storage_floats)];
  };

  //! @brief Loaded to wire arrangement, rotated.
  //! @param key  `sign_key(step, seed)`: the same on every rank, fresh in every step.
  template <block_context Context>
  TERSUM_BODY static void forward(
    Context const& ctx, chunk const& mine, std::uint64_t key, storage& shared, float (&v)[32])
  {
    apply_signs<~0u>(ctx, mine, key, v, Rotate);
    to_wire(ctx, mine, shared, v);
  }

  //! @brief Wire to loaded arrangement, rotated back.
  template <block_context Context>
  TERSUM_BODY static void backward(
    Context const& ctx, chunk const& mine, std::uint64_t key, storage& shared, float (&v)[32])
  {
    to_loaded(ctx, mine, shared, v);
    apply_signs(ctx, mine, key, v, Rotate);
  }

  //! @name `forward` and `backward` without signs
  //! @{
  template <block_context Context>
  TERSUM_BODY static void to_wire(Context const& ctx,
                                  chunk const& mine,
                                  storage& shared,
                                  float (&v)[32])
  {
    to_wire(ctx, v, tile_of(ctx, shared), mine.thread, mine.first);
  }
  template <block_context Context>
  TERSUM_BODY static void to_loaded(Context const& ctx,
                                    chunk const& mine,
                                    storage& shared,
                                    float (&v)[32])
  {
    to_loaded(ctx, v, tile_of(ctx, shared), mine.thread, mine.first);
  }
  //! @}

  //! The barrier between two uses of the storage.
  template <class Context>
  TERSUM_BODY static void synchronize(Context const& ctx)
  {
    in_warp ? ctx.sync_warp() : ctx.sync_block();
  }

  //! @brief Flips the signs of the loaded arrangement; register i takes bit i of the thread's word of `sign_bits`.
  //! @tparam ByPredicates  See `thread_hadamard::apply_signs`.
  //! @param flips          Whether any is flipped.
  template <std::uint32_t ByPredicates = 0, class Context>
  TERSUM_BODY static void apply_signs(
    Context const& ctx, chunk const& mine, std::uint64_t key, float (&v)[32], bool flips = true)
  {
    thread_hadamard<32>::apply_signs<ByPredicates>(
      ctx, mine.chunk * (Size / 32) + mine.thread, key, v, flips);
  }

  //! @name What `forward` and `backward` are made of
  //! @{

  //! Where a coordinate of the tile lies in storage. It is shifted so that neither arrangement has bank conflicts, and it
  //! is a sum of a term of the thread and a term of the register, so that addresses are a base and a constant.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_INLINE static constexpr Integer slot(Integer e) noexcept
  {
    return e + e / 32 * 4 + e / 256 * 8;
  }

  //! The coordinate in register k of thread t between the two arrangements.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned middle(unsigned t, unsigned k) noexcept
  {
    constexpr int low = 3 + middle_levels;  // index bits below the filling ones
    return (t & ((1u << low) - 1)) | k << low | t >> low << (log - 2);
  }

  //! @brief Registers to the tile, four at a time, and back.
  //! @tparam Striped  Whether they are the fours that the threads of a chunk have in its order: registers 4 q to 4 q + 3 of thread t have
  //!                  coordinates q Size/8 + 4 t + (0 to 3). Otherwise they are the loaded arrangement.
  template <bool Striped = false, class Context>
  TERSUM_BODY static void put(
    Context const& ctx, float const (&v)[32], float* storage, unsigned t, unsigned first)
  {
    TERSUM_UNROLL
    for (unsigned q = 0; q < 8; ++q) {
      thread_values<4>::store(
        ctx, v + 4 * q, storage + slot(first + t * (Striped ? 4 : 8)) + slot(four<Striped>(q)));
    }
  }
  template <bool Striped = false, class Context>
  TERSUM_BODY static void get(
    Context const& ctx, float (&v)[32], float const* storage, unsigned t, unsigned first)
  {
    TERSUM_UNROLL
    for (unsigned q = 0; q < 8; ++q) {
      thread_values<4>::load(
        ctx, storage + slot(first + t * (Striped ? 4 : 8)) + slot(four<Striped>(q)), v + 4 * q);
    }
  }

  //! @brief `forward` without signs.
  //! @param storage  Of the tile: `storage_floats`, aligned to 16 bytes.
  //! @param t        This thread's place in its chunk, 0 .. threads-1.
  //! @param first    Its chunk's first coordinate in the tile.
  //! @tparam Striped  As `put` has it, where nothing is rotated.
  template <bool Striped = false, class Context>
  TERSUM_BODY static void to_wire(
    Context const& ctx, float (&v)[32], float* storage, unsigned t, unsigned first)
  {
    detail::register_butterflies<0, Rotate ? 5 : 0>(ctx, v);
    put<Striped>(ctx, v, storage, t, first);
    synchronize(ctx);
    transform_middle(ctx, v, storage, t);
    columns::load(ctx, storage, t, first, v);
    detail::register_butterflies<0, Rotate ? wire_levels : 0>(ctx, v);
  }

  //! @brief `backward` without signs.
  //! @tparam LowDone, HighDone  How many levels of the lowest and of the highest register bits are done already.
  //! @tparam Striped            As `get` has it, where nothing is rotated.
  template <int LowDone = 0, int HighDone = 0, bool Striped = false, class Context>
  TERSUM_BODY static void to_loaded(
    Context const& ctx, float (&v)[32], float* storage, unsigned t, unsigned first)
  {
    detail::register_butterflies<LowDone, Rotate ? wire_levels - HighDone : 0>(ctx, v);
    columns::store(ctx, storage, t, first, v);
    synchronize(ctx);
    transform_middle(ctx, v, storage, t);
    get<Striped>(ctx, v, storage, t, first);
    detail::register_butterflies<0, Rotate ? 5 : 0>(ctx, v);
  }
  //! @}

 private:
  using columns = detail::tile_columns<block_hadamard, Size>;

  template <class Context>
  [[nodiscard]] TERSUM_BODY static float* tile_of(Context const& ctx, storage& shared)
  {
    return shared.of_tile[in_warp ? ctx.thread_rank() / 32 : 0];
  }

  //! Where the q-th four of thread 0 begin.
  template <bool Striped>
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned four(unsigned q) noexcept
  {
    return Striped ? q * (Size / 8) : q / 2 * (Size / 4) + q % 2 * 4;
  }

  // Every thread writes back where it read, so one barrier after it is enough.
  template <class Context>
  TERSUM_BODY static void transform_middle(Context const& ctx,
                                           float (&v)[32],
                                           float* storage,
                                           unsigned t)
  {
    if constexpr (middle_levels > 0 && Rotate) {
      TERSUM_UNROLL
      for (unsigned k = 0; k < 32; ++k) { v[k] = storage[slot(middle(t, 0)) + slot(middle(0, k))]; }
      detail::register_butterflies<5 - middle_levels, 5>(ctx, v);
      TERSUM_UNROLL
      for (unsigned k = 0; k < 32; ++k) { storage[slot(middle(t, 0)) + slot(middle(0, k))] = v[k]; }
      synchronize(ctx);
    }
  }
};

}  // namespace tersum::inline v0
