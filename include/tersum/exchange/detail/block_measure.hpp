// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is measured of every chunk: its squared norm, its largest rotated magnitude, or what the plain form of a range measures;
//! and what a selection compares. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_norm.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/lane_row.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_basis.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief How the chunks of a codec are shared out for their norms.
template <class Codec, class Element>
using codec_norm_shape = norm_shape<Codec::chunk_size,
                                    std::conditional_t<Codec::rotates_all, float, Element>,
                                    feeds_back<Codec>>;

//! @brief Eight values, gradient plus residual. At edges only `left` of them exist, and the others are zeros; neighbouring lanes load
//! neighbours, so that all threads of the warp call it.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_for_norm(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first,
                               int left,
                               float* v)
{
  if (Codec::rotates_all) {
    thread_values<8>::load(ctx, args.rotated + first, v);
  } else if (Edge) {
    using shape       = codec_norm_shape<Codec, Element>;
    auto const other  = joined_array(args, first);
    auto const join   = joining<Context>(args);
    auto const member = ctx.thread_rank() % shape::lanes;
    lane_row<shape::lanes>::load(ctx, member, v, [&](unsigned owner, unsigned element) {
      int const at =
        static_cast<int>(owner * shape::row + element) - static_cast<int>(member * shape::row);
      return at < left ? load_joined(ctx, args.gradient + first, at, other, join) : 0.0f;
    });
  } else {
    load_eight_joined(
      ctx, args.gradient + first, v, joined_array(args, first), joining<Context>(args));
  }
}

//! @brief What one thread adds up of a chunk of an exchange.
//! @param first  The thread's first coordinate in the gradient.
//! @param left   Coordinates of the chunk from there on.
template <bool Edge, class Codec, class Element, class Context, std::size_t Rows>
TERSUM_BODY void add_squares(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint64_t first,
                             int left,
                             float (&parts)[Rows])
{
  auto const load = [&](int within, float* v) {
    load_for_norm<Edge>(ctx, args, first + static_cast<unsigned>(within), left - within, v);
  };
  add_squares<codec_norm_shape<Codec, Element>>(ctx, load, parts);
}

//! @brief Stores a chunk's norm: on the wire if norms of chunks are agreed on, otherwise in the chunk's step.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_norm(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            std::uint64_t chunk,
                            float norm)
{
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args.agreed);
  norm                 = inspected(args, norm);
  if (norms_travel<Codec>) {
    ctx.store(agreed + chunk, to_agreed<scalar>(norm, false));
  } else {
    ctx.store(&args.steps[chunk].encode, norm);
  }
}

//! @brief The norms of a warp's chunks from `first` on, whole or not. Each group of lanes takes one after the other, sixteen
//! bytes at a time where those of all groups are whole and aligned.
template <class Codec, class Element, class Context>
TERSUM_BODY void edge_norms(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            std::uint32_t first)
{
  using shape           = codec_norm_shape<Codec, Element>;
  unsigned const member = ctx.thread_rank() % shape::lanes;
  for (int i = 0; i < shape::chunks; ++i) {
    std::uint32_t const chunk = first + static_cast<unsigned>(i * (32 / shape::lanes)) +
                                ctx.thread_rank() % 32 / shape::lanes;
    bool const active    = chunk < args.chunks;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;  // stays 0 in lanes without a chunk, which shuffle like all others
    if (active) {
      word4 const entry = ctx.load(reinterpret_cast<word4 const*>(args.table + chunk));
      offset            = entry.x | static_cast<std::uint64_t>(entry.y) << 32;
      length            = entry.z;
    }
    float parts[1][shape::rows];
    std::uint64_t const begin = offset + member * shape::row;
    int const left            = static_cast<int>(length) - static_cast<int>(member * shape::row);
    if (ctx.warp_max(is_regular(args, offset, length) ? 0u : 1u) == 0) {
      add_squares<false>(ctx, args, begin, left, parts[0]);
    } else {
      add_squares<true>(ctx, args, begin, left, parts[0]);
    }
    add_lanes<shape::lanes>(ctx, member, parts);
    if (active && member == 0) { store_norm(ctx, args, chunk, parts[0][0]); }
  }
}

//! @brief Squared norms: 256 accumulators a chunk, chained by fused multiply-adds over the chunk in steps of 256, then
//! added pairwise from the lowest index bit up. That tree is part of the wire format.
//!
//! Reads the gradient (and residual) once. 128 threads a block, `codec_norm_shape::chunks_per_block` chunks a block, no shared memory. A
//! warp's chunks are regular if they lie one after the other in one tensor, whole and aligned to 16 bytes; otherwise all of them are edges.
//! @param first_chunk  The bits of `edge_groups`, whose groups are the chunks of a warp; regular chunks begin at 0.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void chunk_norms(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint64_t first_chunk)
{
  using shape           = codec_norm_shape<Codec, Element>;
  constexpr int size    = shape::size;
  unsigned const member = ctx.thread_rank() % shape::lanes;
  unsigned const group  = ctx.thread_rank() % 32 / shape::lanes;
  // A plan has less than 2^31 chunks.
  constexpr auto in_warp   = static_cast<unsigned>(shape::chunks_per_warp);
  std::uint32_t const warp = ctx.block_rank() * 4 + ctx.thread_rank() / 32;
  std::uint32_t const first =
    Edge && !Codec::rotates_all
      ? static_cast<std::uint32_t>(edge_group<in_warp>(args, first_chunk, warp))
      : warp * in_warp;
  std::uint64_t offset = group * (shape::chunks * size) + member * shape::row;
  if (Codec::rotates_all) {
    if (first >= args.chunks) { return; }
  } else {
    bool regular = first + static_cast<unsigned>(shape::chunks_per_warp - 1) < args.chunks;
    if (regular) {
      auto const* const entries = reinterpret_cast<word4 const*>(args.table) + first;
      word4 const begin         = ctx.load(entries);
      word4 const end           = ctx.load(entries + (shape::chunks_per_warp - 1));
      offset += begin.x | static_cast<std::uint64_t>(begin.y) << 32;
      bool const whole = is_regular(args, offset, end.z);
      regular          = whole & (begin.w == end.w);  // not &&: one branch is enough
    }
    if (regular == Edge) { return; }
  }
  if constexpr (Edge) {
    if (!Codec::rotates_all && first < args.chunks) { edge_norms(ctx, args, first); }
  } else {
    float parts[shape::chunks][shape::rows];
    TERSUM_UNROLL
    for (int i = 0; i < shape::chunks; ++i) {
      std::uint64_t begin = offset + static_cast<unsigned>(i * size);
      if (Codec::rotates_all) {
        // Lanes beyond the last chunk take that one again, since all lanes must shuffle.
        std::uint64_t const number = first + group * shape::chunks + static_cast<unsigned>(i);
        begin                      = minimum(number, args.chunks - 1) * size + member * shape::row;
      }
      add_squares<false>(ctx, args, begin, size, parts[i]);
    }
    add_lanes<shape::lanes>(ctx, member, parts);
    if (shape::lanes > shape::chunks && member >= static_cast<unsigned>(shape::chunks)) { return; }
    std::uint64_t const chunk = first + (group * shape::chunks + member);
    TERSUM_UNROLL
    for (int i = 0; i < shape::chunks; i += shape::lanes) {
      std::uint64_t const number = chunk + static_cast<unsigned>(i);
      float norm                 = parts[i / shape::lanes][0];
      if (Codec::rotates_all) {
        if (number >= args.chunks) { return; }
        // The rotated copy is not normalized; its length is a power of two, so this is exact.
        std::uint64_t const padded = args.records[args.table[number].tensor].chunks * size;
        norm                       = Context::divide(norm, static_cast<float>(padded));
      }
      store_norm(ctx, args, number, norm);
    }
  }
}

//! @brief `chunk_norms` in the units of a metric. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void scaled_norms(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              std::uint64_t first_chunk)
{
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float v[32];
  load_coordinates<Edge>(ctx, args, mine, v);
  divide_by_scales<Edge>(ctx, args, mine, v);
  float const norm = block_norm<Codec::chunk_size>::squared(ctx, mine, nullptr, v);
  if (mine.active && mine.thread == 0) { store_norm(ctx, args, mine.chunk, norm); }
}

//! @brief The largest magnitude of each rotated chunk, in units of the gradient. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void chunk_magnitudes(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t first_chunk)
{
  using hadamard        = typename own_chunk<Codec>::hadamard;
  using scalar          = typename Codec::range_type::scalar;
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage = tile_storage<hadamard>(ctx);
  float v[32];
  load_signed<Edge>(ctx, args, mine, storage, v);
  if (Codec::rotates_chunks) {
    hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    hadamard::synchronize(ctx);
  }
  float magnitude = block_norm<Codec::chunk_size>::largest(ctx, mine, storage, v);
  if (mine.active && mine.thread == 0) {
    if (Codec::rotates_chunks || Codec::rotates_in_memory || Codec::rotates_all) {
      std::uint64_t const chunks = args.records[args.table[mine.chunk].tensor].chunks;
      magnitude                  = Context::divide(magnitude, rotation_root<Codec>(chunks));
    }
    magnitude = inspected(args, magnitude);
    ctx.store(static_cast<scalar*>(args.agreed) + mine.chunk, to_agreed<scalar>(magnitude, true));
  }
}

//! @brief The grid of `measure_chunks`: chunks lie in shared memory, with as much scratch.
template <class Codec>
inline constexpr int measure_shared = maximum(
  shared_bytes<Codec>, chunk_memory<Codec::chunk_size>::tile_floats* tiles_per_block<Codec> * 4);

//! @brief Calls `measure` of the codec's range with each chunk, rotated or not. Otherwise the launch of `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void measure_chunks(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                std::uint64_t first_chunk)
{
  using hadamard        = typename own_chunk<Codec>::hadamard;
  using range           = typename Codec::range_type;
  using memory          = chunk_memory<Codec::chunk_size>;
  using order           = chunk_order<Codec::chunk_size>;
  constexpr int tile    = maximum(memory::tile_floats, hadamard::storage_floats);
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) + (hadamard::in_warp ? ctx.thread_rank() / 32 * tile : 0);
  memory const own{storage, mine};
  float v[32];
  if (range::measures_rotated) {
    load_signed<Edge>(ctx, args, mine, storage, v);
    hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    hadamard::synchronize(ctx);
    float const root = rotation_root<Codec>(1);
    for (unsigned k = 0; k < 32; ++k) {
      own.x()[order::coordinate(32 * mine.thread + k)] = Context::divide(v[k], root);
    }
  } else {
    load_coordinates<Edge>(ctx, args, mine, v);
    divide_by_scales<Edge>(ctx, args, mine, v);
    for (int i = 0; i < 32; ++i) { own.x()[mine.coordinate(i)] = v[i]; }
  }
  hadamard::synchronize(ctx);
  block_group<Context, hadamard::threads> const group{ctx, own.words()};
  float const measured = args.codec.coder.range.measure(group, own.x(), own.scratch());
  if (mine.active && mine.thread == 0) {
    using scalar = typename range::scalar;
    ctx.store(static_cast<scalar*>(args.agreed) + mine.chunk,
              to_agreed<range>(inspected(args, measured)));
  }
}

//! @brief The energy by which a chunk is chosen; where each coordinate is chosen for itself, its magnitude with its residual, as the bits
//! of a float.
//! @{
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         exchange_args<Codec, Element> const& args,
                                                         std::uint64_t chunk)
{
  std::uint32_t energy = 0;
  if (Codec::chunker_type::by_norm) {
    using scalar = typename Codec::norm_scalar;
    energy =
      weighted_energy(args, chunk, ctx.load(static_cast<scalar const*>(args.agreed) + chunk));
  }
  return score_of(args, chunk, energy);
}
template <gathering Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         exchange_args<Codec, Element> const& args,
                                                         std::uint64_t coordinate)
{
  return magnitude_bits(
    load_joined(ctx, args.gradient, coordinate, joined_array(args, 0), joining<Context>(args)));
}
//! @}

}  // namespace tersum::inline v0::detail
