// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How kernels that hold chunks in registers rotate them: by its packed form or, without one, its plain form in shared memory.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_group.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A chunk of `Size` in shared memory, as much scratch, and what a group needs.
template <int Size>
struct chunk_memory {
  static constexpr int floats      = 2 * Size + group_lanes;
  static constexpr int tile_floats = block_chunk<Size>::tile / Size * floats;

  float* own;

  //! @param storage  `tile_floats` of the chunk's tile.
  TERSUM_BODY chunk_memory(float* storage, block_chunk<Size> const& mine)
    : own{storage + mine.first / Size * floats}
  {
  }

  [[nodiscard]] TERSUM_BODY float (&x() const)[extent(Size)]
  {
    return *reinterpret_cast<float(*)[extent(Size)]>(own);
  }
  [[nodiscard]] TERSUM_BODY float (&scratch() const)[extent(Size)]
  {
    return *reinterpret_cast<float(*)[extent(Size)]>(own + Size);
  }
  [[nodiscard]] TERSUM_BODY void* words() const { return own + 2 * Size; }
};

//! @brief A rotator without a packed form. The rotation copies the loaded arrangement to shared memory, calls the plain form
//! there, and loads it again; then the arrangement changes as without a rotation.
template <class Rotator, int Size>
struct rotation_in_memory : block_hadamard<Size, false> {
  using base  = block_hadamard<Size, false>;
  using chunk = block_chunk<Size>;

  static_assert(
    Size <= 16384,
    "tersum: a GPU's shared memory holds a chunk and as much scratch of up to 16384 coordinates: give the "
    "rotator a packed form, or take smaller chunks");

  static constexpr int storage_floats =
    maximum(base::storage_floats, chunk_memory<Size>::tile_floats);

  //! @param storage  Of the tile.
  //! @tparam Forward  Or back.
  template <bool Forward, class Context>
  TERSUM_BODY static void rotate(Context const& ctx,
                                 Rotator const& rotator,
                                 chunk const& mine,
                                 std::uint64_t key,
                                 float* storage,
                                 float (&v)[32])
  {
    chunk_memory<Size> const own{storage, mine};
    block_group<Context, base::threads> const g{ctx, own.words()};
    rotation_key const of{key, mine.chunk};
    base::synchronize(ctx);
    for (int i = 0; i < 32; ++i) { own.x()[mine.coordinate(i)] = v[i]; }
    base::synchronize(ctx);
    Forward ? rotator.forward(g, own.x(), own.scratch(), of)
            : rotator.backward(g, own.x(), own.scratch(), of);
    base::synchronize(ctx);
    for (int i = 0; i < 32; ++i) { v[i] = own.x()[mine.coordinate(i)]; }
    base::synchronize(ctx);
  }
};

//! @brief How kernels rotate chunks of `Size`.
template <class Rotator, int Size>
struct rotation_of {
  using type = rotation_in_memory<Rotator, Size>;
};

template <class Rotator, int Size>
requires(has_packed_rotation<Rotator, Size>) struct rotation_of<Rotator, Size> {
  using type = typename Rotator::template packed<Size>;
};

//! @brief The shared memory of this thread's tile: of its warp, or of the block that a chunk takes.
template <class Rotation, class Context>
[[nodiscard]] TERSUM_BODY float* tile_storage(Context const& ctx)
{
  return static_cast<float*>(ctx.shared()) +
         (Rotation::in_warp ? ctx.thread_rank() / 32 * Rotation::storage_floats : 0);
}

//! @brief Whether a rotator's packed form rotates, rather than only changing arrangements.
template <class Rotation>
inline constexpr bool transforms_registers = false;

template <int Size>
inline constexpr bool transforms_registers<block_hadamard<Size, true>> = true;

}  // namespace tersum::inline v0::detail
