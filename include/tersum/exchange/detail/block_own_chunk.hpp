// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which chunk a thread works on, in kernels of regular chunks and of edges: kernel body parts.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The chunk that a thread works on, and its place in it.
template <class Codec>
struct own_chunk : block_chunk<Codec::chunk_size> {
  using hadamard = typename Codec::rotation;

  bool active;  //!< false: nothing to read or write.
};

//! @brief How many tiles of `hadamard::tile` coordinates a block works on. A tile is as much as threads that synchronize
//! share: the chunks of a warp, or one chunk above 1024 coordinates.
template <class Codec>
inline constexpr int tiles_per_block = own_chunk<Codec>::block_tiles;

//! @brief Chunks of a tile.
template <class Codec>
inline constexpr unsigned chunks_of_group = own_chunk<Codec>::hadamard::tile / Codec::chunk_size;

//! @brief Shared memory of a block in bytes.
template <class Codec>
inline constexpr int shared_bytes =
  own_chunk<Codec>::hadamard::storage_floats* tiles_per_block<Codec> * 4;

//! @brief How chunks are distributed over blocks.
struct chunk_grid {
  std::uint64_t chunks_a_block;
  int threads;
  int shared;  //!< Bytes.
};

//! @brief The grid of the kernels that rotate.
template <class Codec>
inline constexpr chunk_grid grid_of{.chunks_a_block =
                                      static_cast<std::uint64_t>(own_chunk<Codec>::hadamard::tile) *
                                      tiles_per_block<Codec> / Codec::chunk_size,
                                    .threads = own_chunk<Codec>::block_threads,
                                    .shared  = shared_bytes<Codec>};

//! @brief Whether what begins at this offset can be moved sixteen bytes at a time: the same for all chunks of a tensor.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool is_aligned(exchange_args<Codec, Element> const& args,
                                            std::uint64_t offset)
{
  bool const aligned = reinterpret_cast<std::uintptr_t>(args.gradient + offset) % 16 == 0;
  if (in_metric<Codec>) {
    if (reinterpret_cast<std::uintptr_t>(args.metric.scales + offset) % 16 != 0) { return false; }
  }
  return aligned && (!feeds_back<Codec> || publishing<Codec> ||
                     reinterpret_cast<std::uintptr_t>(args.residual + offset) % 16 == 0);
}

//! @brief Whether an array is null or can be moved sixteen bytes at a time from there on.
[[nodiscard]] inline bool begins_aligned(auto const* array, std::uint64_t at)
{
  return array == nullptr || reinterpret_cast<std::uintptr_t>(array + at) % 16 == 0;
}

//! @brief Whether what kernels of owned chunks move of a tensor besides codes can be moved so: scales of a metric, and what this rank
//! publishes.
//! @{
template <class Codec, class Element>
[[nodiscard]] bool is_owned_aligned(exchange_args<Codec, Element> const& args,
                                    tensor_record const& record)
{
  return begins_aligned(args.metric.scales, record.offset);
}
template <publishing Codec, class Element>
[[nodiscard]] bool is_owned_aligned(exchange_args<Codec, Element> const& args,
                                    tensor_record const& piece)
{
  if (piece.offset < args.parts.begin || piece.offset >= args.parts.end) { return true; }
  std::uint64_t const at = piece.offset - args.parts.begin;
  return begins_aligned(args.gradient, at) && begins_aligned(args.parts.held, at) &&
         begins_aligned(args.residual, at) && begins_aligned(args.metric.scales, piece.offset);
}
//! @}

//! @brief Bytes of a coordinate in that one of these arrays which has the shortest.
template <class Codec, class Element>
inline constexpr std::size_t bytes_of_coordinate =
  minimum(minimum(sizeof(Element), in_metric<Codec> ? sizeof(metric_scale<Codec>) : 16),
          feeds_back<Codec> && !publishing<Codec> ? sizeof(residual_element<Codec>) : 16);

//! @brief Whether a chunk at this offset is whole and can be moved sixteen bytes at a time.
template <class Codec, class Element>
[[nodiscard]] TERSUM_BODY bool is_regular(exchange_args<Codec, Element> const& args,
                                          std::uint64_t offset,
                                          std::uint32_t length)
{
  return length == static_cast<std::uint32_t>(Codec::chunk_size) && is_aligned(args, offset);
}

//! @brief Which groups of chunks a kernel of edges goes through; a group is what lies in one warp, or in one block above 1024
//! coordinates. Of tensors that are aligned only the last chunk can be an edge. So first, for each tensor, comes the group with
//! its last chunk; then all groups in which there may be others of tensors that are not aligned.
struct edge_groups {
  std::uint32_t first = 0;  //!< The first one of these.
  std::uint32_t ends  = 0;  //!< How many tensors there are.

  //! As kernels get it. A number below 2^32 stands for all chunks from that one on.
  [[nodiscard]] TERSUM_INLINE std::uint64_t bits() const
  {
    return first | static_cast<std::uint64_t>(ends) << 32;
  }
};

//! @brief The first chunk of the group that is number `slot` in `edges`, the bits of `edge_groups`; `args.chunks` if others have it.
//! @tparam InGroup  Chunks of a group.
template <unsigned InGroup, class Codec, class Element>
[[nodiscard]] TERSUM_BODY std::uint64_t edge_group(exchange_args<Codec, Element> const& args,
                                                   std::uint64_t edges,
                                                   std::uint32_t slot)
{
  auto const ends = static_cast<std::uint32_t>(edges >> 32);
  if (ends == 0) { return edges + slot * InGroup; }
  auto const first_of = [](tensor_record const& record) {
    return static_cast<std::uint32_t>(record.first_chunk);
  };
  auto const last_of = [&](tensor_record const& record) {
    return first_of(record) + static_cast<std::uint32_t>(record.chunks) - 1;
  };
  if (slot < ends) {
    tensor_record const& record = args.records[slot];
    if (record.chunks == 0) { return args.chunks; }
    std::uint32_t const group = last_of(record) / InGroup;
    // Where several tensors end in one group, the first of them brings it.
    std::uint32_t const first = first_of(record);
    if (first != 0 && (first - 1) / InGroup == group) { return args.chunks; }
    return group * InGroup;
  }
  std::uint32_t const group = static_cast<std::uint32_t>(edges) + (slot - ends);
  std::uint32_t const chunk = group * InGroup;
  if (chunk >= args.chunks) { return args.chunks; }
  return last_of(args.records[args.table[chunk].tensor]) / InGroup == group ? args.chunks : chunk;
}

//! @brief The number of this thread's chunk, from `first_chunk` on, and the thread's place in it.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY own_chunk<Codec> number_chunk(Context const& ctx,
                                                        std::uint64_t first_chunk)
{
  using chunk = block_chunk<Codec::chunk_size>;
  own_chunk<Codec> mine{};
  static_cast<chunk&>(mine) = chunk::numbered(ctx, first_chunk);
  return mine;
}

//! @brief Finds this thread's chunk.
//!
//! Regular chunks (whole, aligned to 16 bytes) and the others are separate kernels: `Edge` says which one this is, and
//! chunks of the other kind come back inactive. The rotated copy of a whole tensor is always regular.
//! @param first_chunk  At edges the bits of `edge_groups`.
//! @tparam Ordered  Numbers are places in the order of widths.
//! @tparam Regular  With `Edge`: the kernel has both kinds, and chunks are those from `first_chunk` on.
template <bool Edge,
          bool Ordered = false,
          bool Regular = !Edge,
          class Codec,
          class Element,
          class Context>
[[nodiscard]] TERSUM_BODY own_chunk<Codec> find_chunk(Context const& ctx,
                                                      exchange_args<Codec, Element> const& args,
                                                      std::uint64_t first_chunk)
{
  constexpr bool both   = Edge && Regular;
  own_chunk<Codec> mine = number_chunk<Codec>(ctx, Edge && !Regular ? 0 : first_chunk);
  if (Edge && !Regular && !Codec::rotates_all) {
    constexpr unsigned in_group = chunks_of_group<Codec>;
    auto const number           = static_cast<std::uint32_t>(mine.chunk);
    mine.chunk = edge_group<in_group>(args, first_chunk, number / in_group) + number % in_group;
  }
  mine.active = mine.chunk < args.chunks;
  if (mine.active) {
    if constexpr (Ordered) { mine.chunk = ctx.load(args.selection.order + mine.chunk); }
    if (Codec::rotates_all) {
      mine.offset = mine.chunk * Codec::chunk_size;
      mine.length = Codec::chunk_size;
      mine.active = !Edge;
    } else {
      word4 const entry = ctx.load(reinterpret_cast<word4 const*>(args.table + mine.chunk));
      mine.offset       = entry.x | static_cast<std::uint64_t>(entry.y) << 32;
      std::uint32_t const length = entry.z;
      mine.length                = static_cast<int>(length);
      mine.active                = both || is_regular(args, mine.offset, length) != Edge;
    }
  }
  return mine;
}

//! @brief Whether none of the threads that synchronize with this one has work, so that all of them may return. Where a
//! whole warp has one chunk, the compiler then knows that the threads that go on have work.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY bool all_idle(Context const& ctx, own_chunk<Codec>& mine)
{
  if (own_chunk<Codec>::hadamard::threads >= 32) {
    bool const idle = !mine.active;
    mine.active     = true;
    return idle;
  } else {
    return ctx.warp_max(mine.active ? 1u : 0u) == 0;
  }
}

//! @brief Whether the coordinate j places after a thread's first in quarter r exists.
template <class Codec>
[[nodiscard]] TERSUM_BODY bool exists(own_chunk<Codec> const& mine, int r, int j)
{
  int const within = r * (Codec::chunk_size / 4) + static_cast<int>(mine.thread * 8) + j;
  return mine.active && within < mine.length;
}

}  // namespace tersum::inline v0::detail
