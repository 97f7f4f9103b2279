// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm of every chunk, and the largest magnitude of every rotated chunk. Kernel bodies.

#pragma once

#include <tersum/chunk/block_pairs.hpp>
#include <tersum/chunk/block_source.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/range/settle.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! Whether the norms of chunks are what the ranks agree on.
template <class Codec>
inline constexpr bool norms_travel = true;

template <class Codec>
requires(has_steps<Codec>) inline constexpr bool norms_travel<Codec> =
  Codec::range_type::measurement == statistic::chunk_square_norm;

//! @brief Where a chunk's norm goes: to the wire, or to the chunk's step, to be summed over the tensor.
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
    // Half an element is left when the chunks are odd.
    if (chunk + 1 == args.chunks && args.chunks % 2 != 0) {
      ctx.store(agreed + args.chunks, scalar{});
    }
  }
}

//! @brief How blocks of 128 threads share chunks out for their norms: 256 bytes of gradient a thread, where chunks are
//! long enough and a warp can do with one, so that what a thread does once does not weigh. Four threads share the
//! shortest: fewer would read a few bytes each of many lines.
template <class Codec, class Element>
struct norm_share {
  static constexpr int bytes =
    Codec::chunk_size * static_cast<int>(Codec::rotates_all ? sizeof(float) : sizeof(Element));
  static constexpr int lanes = minimum(maximum(bytes / 256, minimum(maximum(bytes / 128, 4), 8)),
                                       32);  //!< Threads that share a chunk.
  //! Of the 256 accumulators, or of as many as a chunk fills, on a thread.
  static constexpr int octets           = maximum(minimum(Codec::chunk_size, 256) / 8 / lanes, 1);
  static constexpr int chunks_per_warp  = 32 / lanes;
  static constexpr int chunks_per_block = 4 * chunks_per_warp;
};

//! @brief The grid of `chunk_norms`.
template <class Codec, class Element>
inline constexpr chunk_grid norms_grid{
  .chunks_a_block = norm_share<Codec, Element>::chunks_per_block, .threads = 128, .shared = 0};

//! @brief Squared norms: 256 accumulators a chunk, chained by fused multiply-adds over the chunk in steps of 256, then
//! added pairwise from the lowest index bit up. That tree is part of the wire format.
//!
//! Reads the gradient (and residual) once. 128 threads a block, `norm_share::chunks_per_block` chunks a block, no shared
//! memory.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void chunk_norms(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint64_t first_chunk)
{
  using share        = norm_share<Codec, Element>;
  constexpr int size = Codec::chunk_size;
  // A plan has less than 2^31 chunks.
  unsigned const lane   = ctx.thread_rank() % 32;
  unsigned const member = lane % share::lanes;
  std::uint32_t const first =
    static_cast<std::uint32_t>(first_chunk) +
    (ctx.block_rank() * 4 + ctx.thread_rank() / 32) * static_cast<unsigned>(share::chunks_per_warp);
  std::uint32_t const chunk = first + lane / share::lanes;
  bool active               = chunk < args.chunks;
  std::uint64_t offset      = chunk * static_cast<std::uint64_t>(size);
  std::uint32_t length      = size;
  auto const read_entry     = [&](std::uint32_t number) {
    word4 const entry = ctx.load(reinterpret_cast<word4 const*>(args.table + number));
    offset            = entry.x | static_cast<std::uint64_t>(entry.y) << 32;
    length            = entry.z;
  };
  if constexpr (!Codec::rotates_all) {
    if (active) {
      read_entry(chunk);
      active = is_regular(args, offset, length) != Edge;
    }
  }
  if constexpr (share::chunks_per_warp == 1) {
    if (!active) { return; }
  } else {
    // Lanes without a chunk of their own go along with one that has: all must shuffle.
    std::uint32_t const leader = ctx.warp_max(active ? lane / share::lanes + 1 : 0);
    if (leader == 0) { return; }
    if (!active) {
      if constexpr (Codec::rotates_all) {
        offset = (first + leader - 1) * static_cast<std::uint64_t>(size);
      } else {
        read_entry(first + leader - 1);
      }
    }
  }

  // Accumulators (q lanes + member) 8 + j, q = 0 .. octets-1. Eight loads at a time are enough in flight.
  float sums[share::octets][8] = {};
  constexpr int steps          = size < 256 ? 1 : size / 256;
  constexpr int unroll         = minimum(steps, 8 / share::octets);
  for (int outer = 0; outer < steps; outer += unroll) {
    float v[unroll][share::octets][8];
    TERSUM_UNROLL
    for (int inner = 0; inner < unroll; ++inner) {
      TERSUM_UNROLL
      for (int q = 0; q < share::octets; ++q) {
        int const within = ((outer + inner) * 32 + q * share::lanes + static_cast<int>(member)) * 8;
        if constexpr (Codec::rotates_all) {
          if (within < size) {
            load_eight(ctx, args.rotated + offset + static_cast<unsigned>(within), v[inner][q]);
          } else {
            for (int j = 0; j < 8; ++j) { v[inner][q][j] = 0.0f; }
          }
        } else {
          load_for_norm<Edge>(ctx, args, offset, static_cast<int>(length), within, v[inner][q]);
        }
      }
    }
    TERSUM_UNROLL
    for (int inner = 0; inner < unroll; ++inner) {
      TERSUM_UNROLL
      for (int q = 0; q < share::octets; ++q) {
        TERSUM_UNROLL
        for (int j = 0; j < 8; ++j) {
          sums[q][j] = Context::fma(v[inner][q][j], v[inner][q][j], sums[q][j]);
        }
      }
    }
  }
  TERSUM_UNROLL
  for (int q = 0; q < share::octets; ++q) {
    TERSUM_UNROLL
    for (int width = 1; width < 8; width *= 2) {
      TERSUM_UNROLL
      for (int j = 0; j < 8; j += 2 * width) {
        sums[q][j] = Context::add(sums[q][j], sums[q][j + width]);
      }
    }
    TERSUM_UNROLL
    for (unsigned mask = 1; mask < static_cast<unsigned>(share::lanes); mask *= 2) {
      sums[q][0] = Context::add(sums[q][0], ctx.shuffle_xor(sums[q][0], mask));
    }
  }
  TERSUM_UNROLL
  for (int width = 1; width < share::octets; width *= 2) {
    TERSUM_UNROLL
    for (int q = 0; q < share::octets; q += 2 * width) {
      sums[q][0] = Context::add(sums[q][0], sums[q + width][0]);
    }
  }
  if (active && member == 0) {
    float norm = sums[0][0];
    if constexpr (Codec::rotates_all) {
      // The rotated copy is not normalized; its length is a power of two, so this is exact.
      norm = Context::divide(
        norm, static_cast<float>(args.records[args.table[chunk].tensor].chunks * size));
    }
    store_norm(ctx, args, chunk, norm);
  }
}

//! @brief Eight values of a chunk, gradient plus residual; zeros beyond its length.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_for_norm(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t offset,
                               int length,
                               int within,
                               float* v)
{
  if constexpr (Edge) {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      v[j] = 0.0f;
      if (within + j < length) {
        std::uint64_t const at = offset + static_cast<unsigned>(within + j);
        v[j]                   = Context::value(ctx.load(args.gradient + at));
        if constexpr (Codec::feeds_back) {
          v[j] = Context::add(v[j], ctx.load(args.residual + at));
        }
      }
    }
  } else {
    float kept[8] = {};
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) { v[j] = 0.0f; }
    if (within < Codec::chunk_size) {  // always, but in chunks of 128
      load_eight(ctx, args.gradient + offset + static_cast<unsigned>(within), v);
      if constexpr (Codec::feeds_back) {
        load_eight(ctx, args.residual + offset + static_cast<unsigned>(within), kept);
        TERSUM_UNROLL
        for (int j = 0; j < 8; ++j) { v[j] = Context::add(v[j], kept[j]); }
      }
    }
  }
}

//! @brief The largest magnitude of each rotated chunk, in units of the gradient. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void chunk_magnitudes(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t first_chunk)
{
  using hadamard          = typename chunk_share<Codec>::hadamard;
  using scalar            = typename Codec::range_type::scalar;
  chunk_share<Codec> mine = find_share<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) +
    (hadamard::in_warp ? ctx.thread_rank() / 32 * hadamard::storage_floats : 0);
  float v[32];
  load_signed<Edge>(ctx, args, mine, v);
  if constexpr (Codec::rotates_chunks) {
    hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    hadamard::synchronize(ctx);
  }
  // As unsigned integers the magnitudes order as floats do, with NaN above infinity.
  std::uint32_t largest = 0;
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { largest = maximum(largest, Context::bits(v[k]) & 0x7fffffffu); }
  largest = chunk_maximum(ctx, largest, mine, storage);
  if (mine.active && mine.thread == 0) {
    float magnitude = Context::from_bits(largest);
    if constexpr (Codec::rotates_chunks || Codec::rotates_all) {
      std::uint64_t const chunks = args.records[args.table[mine.chunk].tensor].chunks;
      magnitude                  = Context::divide(magnitude, rotation_root<Codec>(chunks));
    }
    ctx.store(static_cast<scalar*>(args.agreed) + mine.chunk, to_agreed<scalar>(magnitude, true));
  }
}

//! @brief The largest of one integer a thread over the chunk, on its thread 0. `storage` is free before and after.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t chunk_maximum(Context const& ctx,
                                                      std::uint32_t value,
                                                      chunk_share<Codec> const& mine,
                                                      float* storage)
{
  using hadamard         = typename chunk_share<Codec>::hadamard;
  constexpr int in_group = hadamard::threads < 32 ? hadamard::threads : 32;
  TERSUM_UNROLL
  for (unsigned mask = 1; mask < static_cast<unsigned>(in_group); mask *= 2) {
    value = maximum(value, ctx.shuffle_xor(value, mask));
  }
  if constexpr (!hadamard::in_warp) {
    std::uint32_t* const values = reinterpret_cast<std::uint32_t*>(storage);
    if (mine.thread % 32 == 0) { values[mine.thread / 32] = value; }
    ctx.sync_block();
    for (int warp = 0; warp < hadamard::threads / 32; ++warp) {
      value = maximum(value, values[warp]);
    }
    ctx.sync_block();
  }
  return value;
}

}  // namespace tersum::inline v0::detail
