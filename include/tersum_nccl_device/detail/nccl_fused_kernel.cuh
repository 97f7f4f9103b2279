// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel of nccl_fused.cuh: encode, exchange, recompress and decode, tile by tile, by blocks that stay.
//!
//! A *tile* is what a block of the library's kernels takes at a time. In each *turn* block b of every rank has the same tile, encodes
//! it, and decodes its mean. What adds it up in between is a block of one rank, its owner. Blocks form groups of as many as there are
//! ranks, and in each turn one block of a group does what its rank owns of the tiles of the group, another one from turn to turn. Of
//! codes that are summed that is its own tile. Of a two-shot codec, whose chunks are dealt to the ranks in turn, it is as
//! many chunks, which lie in all tiles of the group.
//!
//! A block encodes turn t, adds up turn t - 1 and decodes turn t - 2: while flags of one turn travel, it works on others.
//!
//! *It ends.* Order the work of all blocks of all ranks by turn t of encoding, t + 1 of adding up, t + 2 of decoding, and in one of
//! these as a block does it. A block does its work in this order, and what it waits for comes before what it waits with. So
//! the first work that is not done waits for nothing, and is done, as its block has a place on the device: for this the host launches
//! no more blocks than the device holds together.
//!
//! *Nothing is overwritten that is still read.* A word of a window has two that touch it, the rank of the window and the owner. Each
//! waits for the flag of the other before it goes on with the word, and the rank ends the call only when it has the flag of the
//! owner, after which the owner does not touch it.

#pragma once

#include <tersum/block/cuda_context.cuh>
#include <tersum/config.hpp>
#include <tersum/execute/detail/cuda_kernels.cuh>

#include <nccl.h>

#include <tersum_nccl_device/detail/nccl_symmetric_kernels.cuh>

#if NCCL_VERSION_CODE >= 22800

#include <cuda/atomic>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! @brief Codecs whose codes are summed, each chunk in its own place of the payload, and whose steps the ranks have agreed on. Scales that
//! follow the mean stop where any chunk is not finite, which is not known while others are decoded.
template <class Codec>
inline constexpr bool fuses_sums = false;

template <class Codec>
requires(sends<Codec, payload::codes> && !selects<Codec> && !keeps_metric<Codec> &&
         !Codec::rotates_all) inline constexpr bool fuses_sums<Codec> =
  std::is_same_v<stages_after<typename Codec::reducer_type>, stage_list<>>;

//! @brief Two-shot codecs of which every chunk travels. What feedback keeps depends on all chunks of the mean, too.
template <class Codec>
inline constexpr bool fuses_parts = scattering<Codec> && !selects<Codec> && !feeds_back<Codec> &&
                                    !owner_feeds_back<Codec> && !keeps_metric<Codec>;

//! @brief Threads and shared memory of a block, and what a tile is.
template <class Codec>
inline constexpr chunk_grid fused_grid = grid_of<Codec>;

template <scattering Codec>
inline constexpr chunk_grid fused_grid<Codec> = two_shot_grid<Codec>;

//! @brief Where things lie in the windows, as bytes, and how much there is to do. All but `rank` is the same on all ranks.
struct fused_shape {
  std::size_t payload;
  std::size_t mean;  //!< Parts of the mean; of two-shot codecs.
  std::size_t flags;
  std::uint32_t flag_blocks;  //!< Blocks that have flags, also where fewer are launched.
  std::uint32_t tiles, turns;
  int rank, ranks;
};

//! @brief The flags in a rank's window: for each block what the blocks of this number of all ranks have done. They count turns, of
//! all calls, and are never reset.
//!
//! A flag has one writer, which sets it to one turn after the other.
class fused_flags {
 public:
  enum kind : std::uint32_t { encoded, added };

  //! Words of the flags of so many blocks, with the turns that the rank's own blocks have behind them.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::size_t words(std::size_t blocks,
                                                                      std::size_t ranks) noexcept
  {
    return blocks * (2 * ranks + 1);
  }

  __device__ fused_flags(symmetric_place const& words, std::uint32_t blocks)
    : words_{words}, blocks_{blocks}
  {
  }

  //! Turns of this block in all calls before.
  [[nodiscard]] __device__ std::uint32_t turns() const { return *own_turns(); }
  __device__ void keep_turns(std::uint32_t turns) const { *own_turns() = turns; }

  //! All threads of the block; what they have stored is part of what flags are set for after that.
  __device__ void meet() const { __syncthreads(); }

  //! Says to a rank that this block has come to a turn.
  __device__ void set(kind what, std::uint32_t to, std::uint32_t turn) const
  {
    word_ref{*flag(what, blockIdx.x, words_.rank, to)}.store(turn, cuda::memory_order_release);
  }

  //! Waits until a block of a rank has said so to this one. The numbers wrap around.
  __device__ void wait(kind what, std::uint32_t block, std::uint32_t from, std::uint32_t turn) const
  {
    word_ref const seen{*flag(what, block, static_cast<int>(from), words_.rank)};
    while (static_cast<std::int32_t>(seen.load(cuda::memory_order_acquire) - turn) < 0) {}
  }

 protected:
  using word_ref = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

  //! Where `from` says to `to` what its block has done.
  [[nodiscard]] __device__ std::uint32_t* flag(kind what,
                                               std::uint32_t block,
                                               int from,
                                               std::uint32_t to) const
  {
    std::size_t const line = static_cast<std::size_t>(what) * blocks_ + block;
    return words_.at<std::uint32_t>(line * static_cast<std::size_t>(words_.ranks) +
                                      static_cast<std::size_t>(from),
                                    static_cast<int>(to));
  }

  [[nodiscard]] __device__ std::uint32_t* own_turns() const
  {
    return words_.at<std::uint32_t>(
      2 * static_cast<std::size_t>(blocks_) * static_cast<std::size_t>(words_.ranks) + blockIdx.x,
      words_.rank);
  }

  symmetric_place words_;
  std::uint32_t blocks_;
};

//! @brief A thread of a block that goes through tiles: kernel bodies take the number of the tile for that of the block.
//!
//! The number of the thread is read anew for each tile. What bodies compute from it would otherwise be computed once, before all
//! tiles, and kept in more registers than there are.
struct tile_context : cuda_context {
  std::uint32_t tile;
  unsigned thread = read_thread();

  [[nodiscard]] __device__ __forceinline__ unsigned thread_rank() const { return thread; }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t block_rank() const { return tile; }

 private:
  [[nodiscard]] static __device__ __forceinline__ unsigned read_thread()
  {
    unsigned number;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
    return number;
  }
};

//! @brief The same, that stores what it stores to this rank's window to the windows of all ranks.
struct pushing_context : tile_context {
  symmetric_place windows;
  symmetric_place payload;  //!< Where parts begin in all windows.

  template <class T>
  __device__ __forceinline__ void store(T* p, T value) const
  {
    for_all(p, [&](T* to) { tile_context::store(to, value); });
  }

  __device__ __forceinline__ void store_global(word4* p, word4 const& value) const
  {
    for_all(p, [&](word4* to) { tile_context::store_global(to, value); });
  }

 private:
  template <class T, class Store>
  __device__ __forceinline__ void for_all(T* p, Store const& store_to) const
  {
    auto* const mine = reinterpret_cast<char*>(p) - windows.offset_of(windows.rank);
    for (int i = 0, to = windows.rank; i < windows.ranks; ++i) {
      store_to(reinterpret_cast<T*>(mine + windows.offset_of(to)));
      if (++to == windows.ranks) { to = 0; }
    }
  }
};

//! @brief Whether a range without a clip takes that of its reducer, from a table. Here the host looks it up: in a kernel of this length
//! the table would lie in local memory.
template <class Codec>
inline constexpr bool looks_up_clip = false;

template <class Codec>
requires(fuses_sums<Codec>&& requires {
  Codec::reducer_type::best_clip(1);
}) inline constexpr bool looks_up_clip<Codec> = true;

//! @brief Encodes a tile into this rank's window, chunks that are edges and others; derives their steps where `derive_steps` has not.
//! @{
template <class Codec, class Element>
__device__ __forceinline__ void encode_tile(tile_context const& ctx,
                                            exchange_args<Codec, Element> const& args)
{
  encode_chunks<false>(ctx, args, 0);
  ctx.sync_block();
  encode_chunks<true>(ctx, args, 0);
}

template <class Codec, class Element>
requires derives_in_encode<Codec> __device__ __forceinline__ void encode_tile(
  tile_context const& ctx, exchange_args<Codec, Element> const& args)
{
  if constexpr (looks_up_clip<Codec>) { __builtin_assume(args.codec.coder.range.clip != 0.0f); }
  derive_and_encode(ctx, args);
}

template <scattering Codec, class Element>
__device__ __forceinline__ void encode_tile(tile_context const& ctx,
                                            exchange_args<Codec, Element> const& args)
{
  encode_parts<false>(ctx, args, 0);
  ctx.sync_block();
  encode_parts<true>(ctx, args, 0);
}
//! @}

//! @brief Adds up a tile's codes of all ranks, and writes the sums to all of them.
//! @param payload  Where the payload begins in all windows.
template <class Codec>
__device__ __forceinline__ void add_tile(tile_context const& ctx,
                                         symmetric_place const& payload,
                                         std::size_t chunks)
{
  using op                       = typename Codec::payload_op;
  using element                  = typename op::element;
  constexpr std::size_t in_chunk = Codec::chunk_size / Codec::lanes::lanes * 4 / sizeof(element);
  constexpr int together         = in_vector<element>;
  static_assert(in_chunk % together == 0, "tersum: a chunk's codes are a multiple of 16 bytes");
  constexpr std::size_t in_tile = fused_grid<Codec>.chunks_a_block;
  constexpr std::size_t step    = fused_grid<Codec>.threads;
  std::size_t const begin       = std::size_t{ctx.tile} * in_tile;
  std::size_t const end         = minimum(begin + in_tile, chunks);
  constexpr std::size_t vectors = in_chunk / together;
  reduce_strided<together>(payload, begin * vectors + ctx.thread, end * vectors, step, op{});
}

//! @brief A chunk of this rank's part, which all ranks hold in their windows.
template <class Codec, class Element>
struct chunk_in_windows : chunk_in_lanes<true, false, Codec, Element, pushing_context> {
  using chunk_in_lanes<true, false, Codec, Element, pushing_context>::chunk_in_lanes;

  [[nodiscard]] __device__ __forceinline__ std::uint32_t const* sent_by(std::uint32_t sender) const
  {
    return this->ctx.payload.template at<std::uint32_t const>(
      this->args.rank * this->args.parts.part_words, static_cast<int>(sender));
  }
};

//! @brief Decodes a tile of the mean, or of the sum, from this rank's window.
//! @{
template <class Codec, class Element>
__device__ __forceinline__ void decode_tile(tile_context const& ctx,
                                            exchange_args<Codec, Element> const& args)
{
  decode_chunks<false>(ctx, args, 0);
  ctx.sync_block();
  decode_chunks<true>(ctx, args, 0);
}

template <scattering Codec, class Element>
__device__ __forceinline__ void decode_tile(tile_context const& ctx,
                                            exchange_args<Codec, Element> const& args)
{
  constexpr auto chunks = static_cast<std::uint32_t>(fused_grid<Codec>.chunks_a_block);
  if (ctx.thread_rank() < chunks) {
    inspect_chunk(ctx, args, std::uint64_t{ctx.tile} * chunks + ctx.thread_rank());
  }
  decode_parts<false>(ctx, args, 0);
  ctx.sync_block();
  decode_parts<true>(ctx, args, 0);
}
//! @}

template <class Codec>
inline constexpr int fused_threads = fused_grid<Codec>.threads;
//! Threads that share a multiprocessor at least: 512 may have 128 registers each. Two shots take more, feedback up to twice as many.
template <class Codec>
inline constexpr int fused_together = feeds_back<Codec>   ? 256
                                      : scattering<Codec> ? 384
                                                          : 512;
template <class Codec>
inline constexpr int fused_blocks = maximum(fused_together<Codec> / fused_threads<Codec>, 1);

//! @brief The whole of it. The range of `args` has a clip. The number of blocks is a multiple of that of ranks, and the same on all of them.
//! @tparam Flags  fused_flags
template <class Flags, class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(fused_threads<Codec>,
                                                                        fused_blocks<Codec>)
  fused_kernel(exchange_args<Codec, Element> args, ncclWindow_t window, fused_shape shape)
{
  symmetric_place const windows{window, 0, shape.rank, shape.ranks};
  symmetric_place const payload = windows.behind(shape.payload);
  // The mean takes the place of the codes, unless it has others.
  [[maybe_unused]] symmetric_place const mean =
    windows.behind(ways_differ<Codec> ? shape.mean : shape.payload);
  Flags const flags{windows.behind(shape.flags), shape.flag_blocks};
  // Memory that a kernel reads at two addresses is not promised to be the same at both of them, so that this rank's own window, too,
  // is where NCCL has mapped it.
  args.payload = payload.at<std::uint32_t>(0, shape.rank);
  if constexpr (scattering<Codec>) { args.parts.gathered = mean.at<std::uint32_t>(0, shape.rank); }

  auto const ranks           = static_cast<std::uint32_t>(shape.ranks);
  auto const rank            = static_cast<std::uint32_t>(shape.rank);
  std::uint32_t const self   = blockIdx.x % ranks;
  std::uint32_t const group  = blockIdx.x - self;  // its first block
  std::uint32_t const before = flags.turns();
  // Which rank's part of the work of its group this block does in a turn: in the next turn that of the next one.
  std::uint32_t encodes_for = self, adds_for = 0, decodes_for = 0;

  for (std::uint32_t now = 0; now < shape.turns + 2; ++now) {
    if (now < shape.turns) {
      tile_context const ctx{{}, now * gridDim.x + blockIdx.x};
      if (ctx.tile < shape.tiles) { encode_tile(ctx, args); }
      flags.meet();
      for (std::uint32_t to = threadIdx.x; to < ranks; to += fused_threads<Codec>) {
        if (scattering<Codec> || to == encodes_for) {
          flags.set(Flags::encoded, to, before + now + 1);
        }
      }
    }
    if (now >= 1 && now <= shape.turns && adds_for == rank) {
      std::uint32_t const from = scattering<Codec> ? ranks * ranks : ranks;
      for (std::uint32_t i = threadIdx.x; i < from; i += fused_threads<Codec>) {
        std::uint32_t const block = scattering<Codec> ? group + i / ranks : blockIdx.x;
        flags.wait(Flags::encoded, block, i % ranks, before + now);
      }
      flags.meet();
      if constexpr (scattering<Codec>) {
        std::uint32_t const tile = ((now - 1) * gridDim.x + group) / ranks;
        pushing_context const ctx{{{}, tile}, mean, payload};
        in_owned_chunk<chunk_in_windows<Codec, Element>>(
          ctx, args, [](auto const& own) { recompress_chunk(own); });
      } else {
        tile_context const ctx{{}, (now - 1) * gridDim.x + blockIdx.x};
        if (ctx.tile < shape.tiles) { add_tile<Codec>(ctx, payload, args.chunks); }
      }
      flags.meet();
      for (std::uint32_t to = threadIdx.x; to < ranks; to += fused_threads<Codec>) {
        flags.set(Flags::added, to, before + now);
      }
    }
    if (now >= 2) {
      for (std::uint32_t of = threadIdx.x; of < ranks; of += fused_threads<Codec>) {
        if (scattering<Codec> || of == decodes_for) {
          // The block of the group that does the part of `of`, as this one does that of `decodes_for`.
          std::uint32_t const block = group + (self + ranks - decodes_for + of) % ranks;
          flags.wait(Flags::added, block, of, before + now - 1);
        }
      }
      flags.meet();
      tile_context const ctx{{}, (now - 2) * gridDim.x + blockIdx.x};
      if (ctx.tile < shape.tiles) { decode_tile(ctx, args); }
      ctx.sync_block();  // the next tile takes the shared memory
    }
    decodes_for = adds_for;
    adds_for    = encodes_for;
    encodes_for = encodes_for + 1 == ranks ? 0 : encodes_for + 1;
  }
  if (threadIdx.x == 0) { flags.keep_turns(before + shape.turns); }
}

}  // namespace detail

}  // namespace tersum::inline v0

#endif  // NCCL_VERSION_CODE >= 22800
