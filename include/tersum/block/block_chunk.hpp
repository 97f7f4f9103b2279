// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk in the registers of a warp or of a block: which thread holds what, and which chunk it is.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief The chunk of `Size` coordinates that a thread works on, and its place in it.
//!
//! Size/32 threads share a chunk, and each has 32 coordinates in registers, in one of two arrangements. *Loaded*:
//! register 8 r + j of thread t holds coordinate r Size/4 + 8 t + j, so that memory is accessed 32 bytes at a time.
//! *Wire*: register k of thread t holds the coordinate at wire position 32 t + k (see `chunk_order`), so that its codes
//! are whole words. On sm_90 `of` takes 14 instructions a thread.
//!
//! Launch blocks of `block_threads` threads. A chunk of 32 coordinates is one thread's. For chunks of up to 1024 coordinates a warp has
//! 1024/Size of them and a block four warps; for larger ones a block has one chunk. All threads of a warp (above 1024 coordinates: of a block) must call whatever
//! takes a chunk, also those whose chunk does not exist. Such a chunk has the length 0, is loaded as zeros and is not stored.
//!
//! It is an aggregate, so that a kernel with a table of chunks can start from `numbered`, and set offset and length itself.
//!
//! @par Example
//! @snippet examples/kernels/inside_your_kernel.hpp load
//! @tparam Size  Coordinates in a chunk, a power of two from 32 to 32768.
template <int Size>
struct block_chunk {
  static_assert(Size >= 32 && Size <= 32768 && (Size & (Size - 1)) == 0,
                "tersum: block_chunk<Size> needs a power of two from 32 to 32768");

  static constexpr int size      = Size;
  static constexpr int registers = 32;            //!< Coordinates of a thread.
  static constexpr bool in_warp  = Size <= 1024;  //!< Whether only warps synchronize.
  static constexpr int threads   = Size / 32;     //!< Threads that share a chunk.
  static constexpr int tile =
    in_warp ? 1024 : Size;  //!< Coordinates of the threads that synchronize: a warp, or a block.
  static constexpr int block_tiles   = in_warp ? 4 : 1;
  static constexpr int block_threads = tile / 32 * block_tiles;    //!< Threads of a block.
  static constexpr int block_chunks  = tile * block_tiles / Size;  //!< Chunks of a block.

  std::uint64_t chunk;   //!< Its number on the wire, which places its signs, dither and words.
  unsigned thread;       //!< This thread's place in it, 0 .. threads-1.
  unsigned first;        //!< This chunk's first coordinate within its tile.
  std::uint64_t offset;  //!< This chunk's first coordinate within the gradient.
  int length;            //!< Coordinates that exist; the rest is zeros.

  //! The number of blocks for a gradient that is cut as by `fixed_chunks`: from the first coordinate on, the last one padded.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint64_t blocks(
    std::uint64_t coordinates) noexcept
  {
    constexpr std::uint64_t each = static_cast<std::uint64_t>(Size) * block_chunks;
    return (coordinates + each - 1) / each;
  }

  //! The number of words that the chunks of such a gradient take, with codes of `Bits` bits.
  template <int Bits>
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint64_t words(
    std::uint64_t coordinates) noexcept
  {
    return (coordinates + Size - 1) / Size * static_cast<std::uint64_t>(Size / 32 * Bits);
  }

  //! @brief This thread's chunk where a launch of `blocks(coordinates)` blocks covers such a gradient.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static block_chunk of(Context const& ctx, std::uint64_t coordinates)
  {
    block_chunk mine  = numbered(ctx, 0);
    mine.offset       = mine.chunk * Size;
    bool const exists = mine.offset < coordinates;
    auto const left   = exists ? coordinates - mine.offset : 0;
    mine.length       = left < Size ? static_cast<int>(left) : Size;
    return mine;
  }

  //! @brief The number of this thread's chunk, and its place; blocks count chunks from `first_chunk` on, below 2^31.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static block_chunk numbered(Context const& ctx,
                                                        std::uint64_t first_chunk)
  {
    constexpr unsigned in_a_tile = tile / Size;
    unsigned const rank          = ctx.thread_rank();
    block_chunk mine{};
    if constexpr (in_warp) {
      std::uint32_t const number = ctx.block_rank() * 4 + rank / 32;
      mine.thread                = rank % threads;
      unsigned const local       = rank % 32 / threads;
      mine.first                 = local * Size;
      mine.chunk = static_cast<std::uint32_t>(first_chunk) + number * in_a_tile + local;
    } else {
      mine.thread = rank;
      mine.chunk  = static_cast<std::uint32_t>(first_chunk) + ctx.block_rank();
    }
    return mine;
  }

  //! The coordinate of the chunk in register i of this thread, loaded arrangement.
  template <std::integral Integer>
  [[nodiscard]] TERSUM_INLINE constexpr Integer coordinate(Integer i) const noexcept
  {
    return i / 8 * (Size / 4) + static_cast<Integer>(thread * 8) + i % 8;
  }

  //! Whether this chunk travels.
  [[nodiscard]] TERSUM_INLINE constexpr bool exists() const noexcept { return length > 0; }
};

}  // namespace tersum::inline v0
