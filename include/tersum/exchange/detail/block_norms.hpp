// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm of every chunk. Kernel body.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/block_squares.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/exchange/detail/steps.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief How the chunks of a codec are shared out for their norms.
template <class Codec, class Element>
using codec_norm_shape = norm_shape<Codec::chunk_size,
                                    std::conditional_t<Codec::rotates_all, float, Element>,
                                    feeds_back<Codec>>;

//! @brief The grid of `chunk_norms`.
template <class Codec, class Element>
inline constexpr chunk_grid norms_grid{.chunks_a_block =
                                         codec_norm_shape<Codec, Element>::chunks_per_block,
                                       .threads = 128,
                                       .shared  = 0};

//! @brief Eight values, gradient plus residual. At edges only `left` of them exist, and the others are zeros.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_for_norm(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first,
                               [[maybe_unused]] int left,
                               float* v)
{
  if constexpr (Codec::rotates_all) {
    load_eight(ctx, args.rotated + first, v);
  } else if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      v[j] = 0.0f;
      if (j < left) {
        std::uint64_t const at = first + static_cast<unsigned>(j);
        v[j]                   = Context::value(ctx.load(args.gradient + at));
        if constexpr (feeds_back<Codec>) {
          v[j] = args.codec.feedback.before(
            context_arithmetic<Context>{}, v[j], ctx.load(args.residual + at));
        }
      }
    }
  } else {
    load_eight(ctx, args.gradient + first, v);
    if constexpr (feeds_back<Codec>) {
      float kept[8];
      load_eight(ctx, args.residual + first, kept);
      TERSUM_UNROLL
      for (int j = 0; j < 8; ++j) {
        v[j] = args.codec.feedback.before(context_arithmetic<Context>{}, v[j], kept[j]);
      }
    }
  }
}

//! @brief What one thread adds up of a chunk of an exchange.
//! @param first  The thread's first coordinate in the gradient.
//! @param left   Coordinates of the chunk from there on.
template <bool Edge, class Codec, class Element, class Context, int Rows>
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

//! @brief Stores a chunk's norm: on the wire if norms of chunks are agreed on, otherwise in the chunk's step, until it is
//! summed over the tensor.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_norm(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            std::uint64_t chunk,
                            float norm)
{
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args.agreed);
  if constexpr (norms_travel<Codec>) {
    ctx.store(agreed + chunk, to_agreed_norm<scalar>(norm, args.world));
  } else {
    ctx.store(&args.steps[chunk].encode, norm);
  }
  if constexpr (std::is_same_v<scalar, norm_log>) {
    // Two norms share an element. With an odd number of chunks the last half is left, and gets a zero.
    if (chunk + 1 == args.chunks && args.chunks % 2 != 0) {
      ctx.store(agreed + args.chunks, scalar{});
    }
  }
}

//! @brief The norms of a warp's chunks from `first` on, whole or not. Each group of lanes takes one after the other.
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
    if (is_regular(args, offset, length)) {
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
//! Reads the gradient (and residual) once. 128 threads a block, `codec_norm_shape::chunks_per_block` chunks a block, no shared
//! memory. A warp's chunks are regular if they lie one after the other in one tensor, whole and aligned to 16 bytes;
//! otherwise all of them are edges.
//! @param first_chunk  Where edges begin, a multiple of `chunks_per_block`; regular chunks begin at 0.
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
  std::uint32_t const first =
    (Edge ? static_cast<std::uint32_t>(first_chunk) : 0) +
    (ctx.block_rank() * 4 + ctx.thread_rank() / 32) * static_cast<unsigned>(shape::chunks_per_warp);
  std::uint64_t offset = group * (shape::chunks * size) + member * shape::row;
  if constexpr (Codec::rotates_all) {
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
      if constexpr (Codec::rotates_all) {
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
      if constexpr (Codec::rotates_all) {
        if (number >= args.chunks) { return; }
        // The rotated copy is not normalized; its length is a power of two, so this is exact.
        std::uint64_t const padded = args.records[args.table[number].tensor].chunks * size;
        norm                       = Context::divide(norm, static_cast<float>(padded));
      }
      store_norm(ctx, args, number, norm);
    }
  }
}

}  // namespace tersum::inline v0::detail
