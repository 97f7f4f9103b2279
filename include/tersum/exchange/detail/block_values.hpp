// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How a warp or block finds its chunk and moves it between global memory and registers: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_load.hpp>
#include <tersum/block/block_norm.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/lane_row.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_kept.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/metric/detail/line_piece.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
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

//! @brief Threads of a block: four warps, or as many as a chunk above 1024 needs.
template <class Codec>
inline constexpr int threads_per_block = own_chunk<Codec>::block_threads;

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
                                    .threads = threads_per_block<Codec>,
                                    .shared  = shared_bytes<Codec>};

//! @brief Whether what begins at this offset can be moved sixteen bytes at a time: the same for all chunks of a tensor.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool is_aligned(exchange_args<Codec, Element> const& args,
                                            std::uint64_t offset)
{
  bool const aligned = reinterpret_cast<std::uintptr_t>(args.gradient + offset) % 16 == 0;
  if constexpr (in_metric<Codec> && !factors_metric<Codec>) {
    if (reinterpret_cast<std::uintptr_t>(args.metric.scales + offset) % 16 != 0) { return false; }
  }
  return aligned && (!feeds_back<Codec> || publishing<Codec> || keeps_blocks<Codec> ||
                     reinterpret_cast<std::uintptr_t>(args.residual + offset) % 16 == 0);
}

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
//! chunks of the other kind come back inactive. The rotated copy of `full_hadamard` is always regular.
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
  if constexpr (Edge && !Regular && !Codec::rotates_all) {
    constexpr unsigned in_group = chunks_of_group<Codec>;
    auto const number           = static_cast<std::uint32_t>(mine.chunk);
    mine.chunk = edge_group<in_group>(args, first_chunk, number / in_group) + number % in_group;
  }
  mine.active = mine.chunk < args.chunks;
  if (mine.active) {
    if constexpr (Ordered) { mine.chunk = ctx.load(args.selection.order + mine.chunk); }
    if constexpr (Codec::rotates_all) {
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
  if constexpr (own_chunk<Codec>::hadamard::threads >= 32) {
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

//! @brief The rows of eight values a lane that a warp moves of a chunk at an edge, one of each quarter.
template <class Codec>
struct edge_rows {
  static constexpr unsigned lanes = lanes_of_chunk<Codec::chunk_size>;
  static constexpr int quarter    = Codec::chunk_size / 4;
  using row                       = lane_row<lanes>;

  unsigned member;  //!< This thread's place among the lanes.
  unsigned begin;   //!< Where the row begins in each quarter.
  int length;       //!< Coordinates that exist in the chunk.

  explicit TERSUM_INLINE edge_rows(own_chunk<Codec> const& mine)
    : member{mine.thread % lanes}, begin{(mine.thread - member) * 8}, length{mine.active
                                                                               ? mine.length
                                                                               : 0}
  {
  }

  //! @brief Eight neighbours, those of quarter r; zeros where there are none. All threads of the warp call it, and `store`.
  //! @param load  load(at): the element so many places after the first one of the quarter, as a float or a word. Neighbouring
  //!              lanes load neighbours.
  template <class Context, class Value, class Load>
  TERSUM_BODY void load(Context const& ctx, int r, Value* v, Load const& load) const
  {
    auto const load_one = [&](unsigned owner, unsigned element) {
      unsigned const at = begin + owner * 8 + element;
      return static_cast<int>(at) < length - r * quarter ? load(at) : Value{};
    };
    row::load(ctx, member, v, load_one);
  }

  //! @brief Writes eight neighbours, those that exist.
  //! @param store  store(at, value): one of them, where `load` has it.
  template <class Context, class Store>
  TERSUM_BODY void store(Context const& ctx, int r, float const* v, Store const& store) const
  {
    auto const store_one = [&](unsigned owner, unsigned element, float value) {
      unsigned const at = begin + owner * 8 + element;
      if (static_cast<int>(at) < length - r * quarter) { store(at, value); }
    };
    row::store(ctx, member, v, store_one);
  }
};

//! @brief Eight neighbours of a thread's coordinates, those of quarter r, of the array in which the chunk begins at `chunk`. At
//! edges all threads of the warp call it.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_eights(
  Context const& ctx, own_chunk<Codec> const& mine, Element const* chunk, int r, float* v)
{
  if constexpr (Edge) {
    edge_rows<Codec> const rows{mine};
    rows.load(ctx, r, v, [&](unsigned at) {
      return Context::value(ctx.load(chunk + at + r * rows.quarter));
    });
  } else {
    load_quarter<false>(ctx, mine, mine.active, chunk, r, v);
  }
}

//! @brief Calls load.operator()<at_edge>(). Where a kernel has chunks of both kinds, a warp loads all of its chunks as edges if one of
//! them is.
//! @tparam Edge, Regular  As `find_chunk` has them.
template <bool Edge, bool Regular, class Codec, class Element, class Context, class Load>
TERSUM_BODY void load_as_edge(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              Load const& load)
{
  if constexpr (Edge && Regular) {
    auto const length = static_cast<std::uint32_t>(mine.length);
    bool const edge   = mine.active && !is_regular(args, mine.offset, length);
    if (ctx.warp_max(edge ? 1u : 0u) != 0) {
      load.template operator()<true>();
    } else {
      load.template operator()<false>();
    }
  } else {
    load.template operator()<Edge>();
  }
}

//! @brief This thread's 32 coordinates in the loaded arrangement, gradient plus residual; zeros where there are none.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_coordinates(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  own_chunk<Codec> const& mine,
                                  float (&v)[32])
{
  [[maybe_unused]] float const weight = weight_of_kept(args);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    auto const load = [&](auto const* from) {
      if constexpr (adds_kept<Codec> && !keeps_blocks<Codec>) {
        auto const add = [&](float value, float kept) {
          context_arithmetic<Context> const math{};
          return args.codec.feedback.before(math, value, weighed<Codec>(math, weight, kept));
        };
        auto const* const kept = args.residual + mine.offset;
        if constexpr (Edge) {
          edge_rows<Codec> const rows{mine};
          rows.load(ctx, r, v + 8 * r, [&](unsigned at) {
            return add(Context::value(ctx.load(from + mine.offset + at + r * rows.quarter)),
                       Context::value(ctx.load(kept + at + r * rows.quarter)));
          });
        } else {
          load_quarter<false>(ctx, mine, mine.active, from + mine.offset, r, v + 8 * r, kept, add);
        }
      } else {
        load_eights<Edge>(ctx, mine, from + mine.offset, r, v + 8 * r);
      }
    };
    if constexpr (Codec::rotates_all) {
      load(args.rotated);
    } else {
      load(args.gradient);
    }
  }
  if constexpr (adds_kept<Codec> && keeps_blocks<Codec>) {
    if (!mine.active) { return; }
    context_arithmetic<Context> const math{};
    byte_block const block = load_block(ctx, args.residual + mine.chunk, mine.thread);
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      if (Edge && !exists(mine, i / 8, i % 8)) { continue; }
      float const kept = weighed<Codec>(math, weight, kept_of_block(math, block, i));
      v[i]             = args.codec.feedback.before(math, v[i], kept);
    }
  }
}

//! @brief Where the scales of this thread's chunk come from under a factored metric.
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY chunk_lines load_chunk_lines(Context const& ctx,
                                                       exchange_args<Codec, Element> const& args,
                                                       own_chunk<Codec> const& mine)
{
  word4 low{};
  word4 high{};
  if (mine.active) {
    low  = ctx.load(args.metric.chunks + 2 * mine.chunk);
    high = ctx.load(args.metric.chunks + 2 * mine.chunk + 1);
  }
  return chunk_lines::of(low, high);
}

//! @brief The scales of this thread's coordinates of rows and columns, loaded arrangement, zeros where there are none. All threads of
//! the warp call it.
//!
//! Sixteen bytes at a time where four neighbours lie in a row; a warp of which any chunk has others loads an element at a time.
template <bool Edge, bool InRows, class Codec, class Element, class Context>
TERSUM_BODY void make_scales(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             own_chunk<Codec> const& mine,
                             float (&scales)[32])
{
  chunk_lines const own    = load_chunk_lines(ctx, args, mine);
  float const* const outer = own.is_vector() ? args.metric.shares : args.metric.lines;
  float const* const inner = own.is_vector() ? args.metric.lines : args.metric.shares;
  auto const make          = [&](unsigned i) {
    auto const at = own.find(i);
    return usable_product(
      Context::multiply(ctx.load(outer + at.outer), ctx.load(inner + at.inner)));
  };
  [[maybe_unused]] auto const make_neighbours = [&] {
    edge_rows<Codec> const rows{mine};
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      auto const first = static_cast<unsigned>(r * (Codec::chunk_size / 4));
      rows.load(ctx, r, scales + 8 * r, [&](unsigned at) { return make(at + first); });
    }
  };
  if constexpr (Edge && !InRows) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      scales[i] = 0.0f;
      if (exists(mine, i / 8, i % 8)) {
        scales[i] = make(static_cast<unsigned>(mine.coordinate(i)));
      }
    }
  } else if constexpr (Edge) {
    make_neighbours();
  } else if (ctx.warp_max(mine.active && !own.in_fours() ? 1u : 0u) != 0) {
    make_neighbours();
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 32; i += 4) {
      float four[4]       = {};
      float outer_of_four = 0.0f;
      if (mine.active) {
        auto const at = own.find(static_cast<unsigned>(mine.coordinate(i)));
        outer_of_four = ctx.load(outer + at.outer);
        load_four(ctx, inner + at.inner, four);
      }
      TERSUM_UNROLL
      for (int j = 0; j < 4; ++j) {
        scales[i + j] = usable_product(Context::multiply(outer_of_four, four[j]));
      }
    }
  }
}

//! @brief The scales of this thread's coordinates as they are kept, loaded arrangement, zeros where there are none; returns the
//! largest magnitude of the chunk's scales. All threads of the warp call it.
//! @tparam InRows  Whether lanes load neighbours, in more instructions. Of the kernels of a rank's own part, which have all kinds of
//!                 chunks, those for scales that are not aligned do.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY float load_scales(Context const& ctx,
                                            exchange_args<Codec, Element> const& args,
                                            own_chunk<Codec> const& mine,
                                            float (&scales)[32])
{
  std::uint32_t largest = 0;
  if constexpr (factors_metric<Codec>) {
    make_scales<Edge, InRows>(ctx, args, mine, scales);
  } else {
    auto const* const from        = args.metric.scales + mine.offset;
    [[maybe_unused]] bool at_once = moves_in_eights<Codec::chunk_size>(from, mine.length);
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      if constexpr (InRows == Edge) {
        load_eights<Edge>(ctx, mine, from, r, scales + 8 * r);
      } else if (at_once) {
        load_quarter<false>(ctx, mine, mine.active, from, r, scales + 8 * r);
      } else {
        load_quarter<true>(ctx, mine, mine.active, from, r, scales + 8 * r);
      }
    }
  }
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    largest = maximum(largest, Context::bits(scales[i]) & 0x7fffffffu);
  }
  return Context::from_bits(
    chunk_maximum(ctx, largest, mine, static_cast<float*>(nullptr)));  // chunks lie in warps
}

//! @brief Replaces values of the loaded arrangement by apply(value, scale) with their scales, raised to the least of the chunk.
//! Without a metric nothing changes.
template <bool Edge, bool InRows, class Codec, class Element, class Context, class Apply>
TERSUM_BODY void apply_scales(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32],
                              Apply const& apply)
{
  if constexpr (in_metric<Codec>) {
    float scales[32];
    float const largest = load_scales<Edge, InRows>(ctx, args, mine, scales);
    float const least   = least_scale(context_arithmetic<Context>{}, args.codec.metric, largest);
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = apply(v[i], raised_scale(scales[i], least)); }
  }
}

//! @brief Divides values of the loaded arrangement by their scales.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
TERSUM_BODY void divide_by_scales(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  own_chunk<Codec> const& mine,
                                  float (&v)[32])
{
  apply_scales<Edge, InRows>(
    ctx, args, mine, v, [](float value, float scale) { return Context::divide(value, scale); });
}

//! @brief Multiplies values of the loaded arrangement by their scales.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
TERSUM_BODY void multiply_by_scales(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    own_chunk<Codec> const& mine,
                                    float (&v)[32])
{
  apply_scales<Edge, InRows>(
    ctx, args, mine, v, [](float value, float scale) { return Context::multiply(value, scale); });
}

//! @brief Writes the loaded arrangement to an array laid out as the gradient. Elements of 16 bits are means, and are
//! rounded to finite ones.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void store_coordinates(Context const& ctx,
                                   Element* to,
                                   own_chunk<Codec> const& mine,
                                   float const (&v)[32])
{
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if constexpr (Edge) {
      edge_rows<Codec> const rows{mine};
      rows.store(ctx, r, v + 8 * r, [&](unsigned at, float value) {
        ctx.store(to + mine.offset + at + r * rows.quarter,
                  Context::template finite_element<Element>(value));
      });
    } else if (mine.active) {
      // A branch of its own: nvcc makes more instructions of the same one behind an argument.
      store_quarter<false>(ctx, mine, true, v + 8 * r, to + mine.offset, r);
    }
  }
}

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

//! @brief Rounds a thread's coordinates of a chunk to what the state keeps, loaded arrangement.
template <class Residual, class Codec>
TERSUM_BODY void round_to_kept([[maybe_unused]] own_chunk<Codec> const& mine,
                               [[maybe_unused]] std::uint32_t draw,
                               [[maybe_unused]] float (&v)[32])
{
  if constexpr (!std::is_same_v<Residual, float>) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      auto const at = static_cast<std::uint32_t>(mine.coordinate(i));
      v[i]          = round_to_kept<Residual>(v[i], draw + at * draw_stride);
    }
  }
}

//! @brief Writes what blocks keep of a thread's coordinates, loaded arrangement.
//! @param rank  As `draw_of_kept` takes it.
template <class Codec, class Element, class Context>
TERSUM_BODY void keep_in_blocks(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                own_chunk<Codec> const& mine,
                                std::uint32_t rank,
                                float const (&v)[32],
                                residual_element<Codec>* to)
{
  std::uint32_t const draw = draw_of_kept(args, mine.chunk, rank) +
                             static_cast<std::uint32_t>(mine.thread) * 8 * draw_stride;
  constexpr std::uint32_t quarter = Codec::chunk_size / 4;
  store_block(ctx, keep_block(context_arithmetic<Context>{}, v, draw, quarter), to, mine.thread);
}

//! @brief `keep_lost` of a thread with work, in blocks.
template <bool Edge, class Codec, class Element, class Context, class Lose>
TERSUM_BODY void keep_lost_in_blocks(Context const& ctx,
                                     exchange_args<Codec, Element> const& args,
                                     own_chunk<Codec> const& mine,
                                     float (&v)[32],
                                     Lose const& lose)
{
  context_arithmetic<Context> const math{};
  [[maybe_unused]] float const weight = weight_of_kept(args);
  auto* const place                   = args.residual + mine.chunk;
  [[maybe_unused]] byte_block before{};
  if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
    before = load_block(ctx, place, mine.thread);
  }
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    float const value = v[i];
    lose(i, v[i]);
    if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
      float const kept = weighed<Codec>(math, weight, kept_of_block(math, before, i));
      v[i]             = args.codec.feedback.after(math, value, v[i], kept);
    }
    if (Edge && !exists(mine, i / 8, i % 8)) { v[i] = 0.0f; }
  }
  keep_in_blocks(ctx, args, mine, args.rank, v, place);
}

//! @brief Writes what feedback keeps to the residual, loaded arrangement.
//! @param v      The values.
//! @param lose   lose(i, value) takes from value i what was decoded of it.
//! @param keeps  Whether the residual changes in this step.
template <bool Edge, class Codec, class Element, class Context, class Lose>
TERSUM_BODY void keep_lost(Context const& ctx,
                           exchange_args<Codec, Element> const& args,
                           own_chunk<Codec> const& mine,
                           float (&v)[32],
                           Lose const& lose,
                           bool keeps = true)
{
  if constexpr (keeps_blocks<Codec>) {
    if (mine.active && keeps) { keep_lost_in_blocks<Edge>(ctx, args, mine, v, lose); }
  } else {
    [[maybe_unused]] constexpr int quarter   = Codec::chunk_size / 4;
    [[maybe_unused]] auto const* const first = args.residual + mine.offset + mine.thread * 8;
    [[maybe_unused]] float const weight      = weight_of_kept(args);
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      [[maybe_unused]] float const value = v[i];
      lose(i, v[i]);
      if constexpr (keeps_sent<Codec>) {
        v[i] = args.codec.feedback.after(context_arithmetic<Context>{}, value, v[i], 0.0f);
      } else if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
        if (!exists(mine, i / 8, i % 8)) { continue; }
        context_arithmetic<Context> const math{};
        float const kept = Context::value(ctx.load(first + (i / 8 * quarter + i % 8)));
        v[i] = args.codec.feedback.after(math, value, v[i], weighed<Codec>(math, weight, kept));
      }
    }
    round_to_kept<residual_element<Codec>>(mine, draw_of_kept(args, mine.chunk, args.rank), v);
    if constexpr (Edge) {
      own_chunk<Codec> kept = mine;
      kept.active           = mine.active && keeps;
      store_coordinates<true>(ctx, args.residual, kept, v);
    } else if (keeps) {
      store_coordinates<false>(ctx, args.residual, mine, v);
    }
  }
}

//! @brief Multiplies decoded values of the loaded arrangement by their scales; scales that the library keeps follow them.
//! Without a metric nothing changes.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void leave_metric(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32])
{
  if constexpr (!keeps_metric<Codec>) {
    multiply_by_scales<Edge>(ctx, args, mine, v);
  } else {
    using scale_type = metric_scale<Codec>;
    context_arithmetic<Context> const math{};
    float scales[32];
    float const largest = load_scales<Edge>(ctx, args, mine, scales);
    bool const unknown  = is_unknown_scale(largest);
    float const least   = least_scale(math, args.codec.metric, largest);
    float const before  = static_cast<float>(args.header->step);
    float first         = 0.0f;
    if (ctx.warp_max(unknown ? 1u : 0u) != 0) {
      float existing[32];
      TERSUM_UNROLL
      for (int i = 0; i < 32; ++i) {
        existing[i] = mine.active && mine.coordinate(i) < mine.length ? v[i] : 0.0f;
      }
      float const square = block_norm(ctx, mine, existing);
      first              = first_scale(math, square, static_cast<std::uint32_t>(mine.length));
    }
    [[maybe_unused]] std::uint32_t draw = 0;
    if constexpr (!std::is_same_v<scale_type, float>) {
      draw = first_draw(mine.chunk, args.header->sign_key);
    }
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      float const scale = raised_scale(scales[i], least);
      float next        = first;
      if (!unknown) { next = args.codec.metric.update(math, v[i], scale, before); }
      if constexpr (std::is_same_v<scale_type, float>) {
        if (is_finite(next)) { scales[i] = next; }
      } else {
        auto const at = static_cast<std::uint32_t>(mine.coordinate(i));
        scales[i]     = kept_scale<scale_type>(next, scales[i], draw + at * draw_stride);
      }
      v[i] = Context::multiply(v[i], scale);
    }
    if (!step_is_poisoned(args)) { store_coordinates<Edge>(ctx, args.metric.scales, mine, scales); }
  }
}

//! @brief Flips the signs of the loaded arrangement; register i takes bit i of the thread's word.
template <class Codec, class Context>
TERSUM_BODY void apply_signs(Context const& ctx,
                             std::uint64_t key,
                             own_chunk<Codec> const& mine,
                             float (&v)[32])
{
  own_chunk<Codec>::hadamard::apply_signs(ctx, mine, key, v);
}

//! @brief Begins a rotation where `to_wire` goes on: with signs, or with all of it in memory.
//! @param storage  Of the chunk's tile.
//! @tparam ByPredicates  See `block_hadamard::apply_signs`.
template <bool ByPredicates = false, class Codec, class Element, class Context>
TERSUM_BODY void begin_forward(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               own_chunk<Codec> const& mine,
                               [[maybe_unused]] float* storage,
                               float (&v)[32])
{
  if constexpr (Codec::rotates_in_memory) {
    own_chunk<Codec>::hadamard::forward(
      ctx, args.codec.rotator, mine, args.header->sign_key, storage, v);
  } else if constexpr (Codec::rotates_chunks) {
    own_chunk<Codec>::hadamard::template apply_signs<ByPredicates>(
      ctx, mine, args.header->sign_key, v);
  }
}

//! @brief Whether what decodes flips signs by predicates, see `block_hadamard::apply_signs`. At edges and in a metric it holds too much else.
template <bool Edge, class Codec>
inline constexpr bool flips_by_predicates = !Edge && !in_metric<Codec>;

//! @brief Ends the way back of a rotation where `to_loaded` has left it: with signs, or with all of it in memory.
//! @param storage  Of the chunk's tile.
//! @tparam ByPredicates  See `block_hadamard::apply_signs`.
template <bool ByPredicates = false, class Codec, class Element, class Context>
TERSUM_BODY void finish_backward(Context const& ctx,
                                 exchange_args<Codec, Element> const& args,
                                 own_chunk<Codec> const& mine,
                                 [[maybe_unused]] float* storage,
                                 float (&v)[32])
{
  if constexpr (Codec::rotates_in_memory) {
    own_chunk<Codec>::hadamard::backward(
      ctx, args.codec.rotator, mine, args.header->sign_key, storage, v);
  } else if constexpr (Codec::rotates_chunks) {
    own_chunk<Codec>::hadamard::template apply_signs<ByPredicates>(
      ctx, mine, args.header->sign_key, v);
  }
}

//! @brief This thread's 32 coordinates of 16 bits in the loaded arrangement, two neighbours a word, as they are.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_pairs(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            own_chunk<Codec> const& mine,
                            std::uint32_t (&pairs)[16])
{
  constexpr int quarter      = Codec::chunk_size / 4;
  Element const* const chunk = args.gradient + mine.offset;
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if constexpr (Edge) {
      std::uint32_t eight[8];
      edge_rows<Codec>{mine}.load(ctx, r, eight, [&](unsigned at) {
        return static_cast<std::uint32_t>(ctx.load(chunk + at + r * quarter).bits);
      });
      TERSUM_UNROLL
      for (int j = 0; j < 4; ++j) { pairs[4 * r + j] = eight[2 * j] | eight[2 * j + 1] << 16; }
    } else {
      word4 four{};
      if (mine.active) {
        four = ctx.load(reinterpret_cast<word4 const*>(chunk + mine.thread * 8 + r * quarter));
      }
      pairs[4 * r]     = four.x;
      pairs[4 * r + 1] = four.y;
      pairs[4 * r + 2] = four.z;
      pairs[4 * r + 3] = four.w;
    }
  }
}

//! @brief `apply_signs` for two coordinates of 16 bits a word.
template <class Codec, class Context>
TERSUM_BODY void apply_signs(Context const&,
                             std::uint64_t key,
                             own_chunk<Codec> const& mine,
                             std::uint32_t (&pairs)[16])
{
  std::uint32_t const word = sign_bits(mine.chunk * (Codec::chunk_size / 32) + mine.thread, key);
  // Bit i in the low half and bit i + 1 in the high one, so that a shift brings both signs of a pair to their places.
  std::uint32_t const spread[2] = {Context::select_bytes(word, word >> 1, 0x5410u),
                                   Context::select_bytes(word, word >> 1, 0x7632u)};
  TERSUM_UNROLL
  for (int p = 0; p < 16; ++p) { pairs[p] ^= spread[p / 8] << (15 - p % 8 * 2) & 0x80008000u; }
}

//! @brief `load_coordinates` in the units of the metric, then what of the rotation comes before `to_wire`: the signs, which 16-bit values take two at a time, in
//! words, or, in memory, all of it.
//! @param storage  Of the chunk's tile.
//! @tparam Edge, Regular  As `find_chunk` has them.
template <bool Edge, bool Regular = !Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_signed(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             own_chunk<Codec> const& mine,
                             [[maybe_unused]] float* storage,
                             float (&v)[32])
{
  if constexpr (Codec::rotates_chunks && sizeof(Element) == 2 && !feeds_back<Codec> &&
                !in_metric<Codec>) {
    std::uint32_t pairs[16];
    load_as_edge<Edge, Regular>(
      ctx, args, mine, [&]<bool AtEdge>() { load_pairs<AtEdge>(ctx, args, mine, pairs); });
    apply_signs(ctx, args.header->sign_key, mine, pairs);
    TERSUM_UNROLL
    for (int p = 0; p < 16; ++p) {
      v[2 * p]     = Context::value(Element{static_cast<std::uint16_t>(pairs[p])});
      v[2 * p + 1] = Context::value(Element{static_cast<std::uint16_t>(pairs[p] >> 16)});
    }
  } else {
    load_as_edge<Edge, Regular>(ctx, args, mine, [&]<bool AtEdge>() {
      load_coordinates<AtEdge>(ctx, args, mine, v);
      divide_by_scales<AtEdge>(ctx, args, mine, v);
    });
    begin_forward<true>(ctx, args, mine, storage, v);
  }
}

}  // namespace tersum::inline v0::detail
