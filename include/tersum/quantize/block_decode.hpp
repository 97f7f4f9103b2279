// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Summed codes to the mean gradient, one pass: unpacking, inverse rotation, signs, scaling. Kernel body.

#pragma once

#include <tersum/chunk/block_source.hpp>
#include <tersum/random/sign_bits.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What a decoded word says of itself: squares of its codes, and lanes at a limit.
template <class Codec, class Context>
TERSUM_BODY void inspect_word(Context const&,
                              std::uint32_t word,
                              std::uint32_t& squares,
                              std::uint32_t& at_limit)
{
  using lanes               = typename Codec::lanes;
  std::uint32_t const minus = (word >> (lanes::bits - 1)) & lanes::ones;
  std::uint32_t const mask  = (minus << lanes::bits) - minus;  // bits is below 32
  std::uint32_t const size  = (word ^ mask) + minus;           // magnitudes, lane by lane
  at_limit += Context::population((size + lanes::ones) & lanes::signs);
  if constexpr (Codec::tracks) {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      std::uint32_t const bytes =
        interleaved == 1 ? size : (size >> (lanes::bits * s)) & (0x01010101u * lanes::full);
      squares = Context::dot_bytes(bytes, bytes, squares);
    }
  }
}

//! @brief The lanes of one word as floats, in wire order, plus `lane_offset`.
template <class Codec, class Context>
TERSUM_BODY void unpack_word(Context const&, std::uint32_t word, float* v)
{
  using lanes = typename Codec::lanes;
  if constexpr (!Codec::reducer_type::biased) {
    word ^= lanes::signs;
  }  // two's complement to offset binary
  if constexpr (lanes::bits == 16) {
    v[0] = static_cast<float>(word & 0xffffu);
    v[1] = static_cast<float>(word >> 16);
  } else {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      std::uint32_t const bytes =
        interleaved == 1 ? word : (word >> (lanes::bits * s)) & (0x01010101u * lanes::full);
      TERSUM_UNROLL
      for (unsigned j = 0; j < 4; ++j) {
        // The byte becomes the low bits of 2^23, or, when it has at most 4 bits, of 2^7.
        v[static_cast<int>(j) * interleaved + s] =
          lanes::bits == 8
            ? Context::from_bits(Context::select_bytes(bytes, 0x4b000000u, 0x7650u | j))
            : Context::from_bits(Context::select_bytes(bytes, 0x43000000u, 0x7044u | j << 8));
      }
    }
  }
}

//! @brief Decodes the chunks from `first_chunk` on; block and thread say which.
//!
//! Reads lane_bits/8 bytes a coordinate, writes the mean. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_chunks(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using hadamard                = typename chunk_share<Codec>::hadamard;
  using lanes                   = typename Codec::lanes;
  using reducer                 = typename Codec::reducer_type;
  constexpr int bits            = lanes::bits;
  chunk_share<Codec> mine = find_share<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) +
    (hadamard::in_warp ? ctx.thread_rank() / 32 * hadamard::storage_floats : 0);

  std::uint32_t words[bits] = {};
  if (mine.active) {
    std::uint32_t const* const from = args.payload +
                                      mine.chunk * (Codec::chunk_size / lanes::lanes) +
                                      mine.thread * bits;
    if constexpr (bits == 2) {
      std::uint64_t const both = ctx.load(reinterpret_cast<std::uint64_t const*>(from));
      words[0]                 = static_cast<std::uint32_t>(both);
      words[1]                 = static_cast<std::uint32_t>(both >> 32);
    } else {
      TERSUM_UNROLL
      for (int w = 0; w < bits; w += 4) {
        word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + w));
        words[w]         = four.x;
        words[w + 1]     = four.y;
        words[w + 2]     = four.z;
        words[w + 3]     = four.w;
      }
    }
  }
  float v[32];
  std::uint32_t squares = 0, at_limit = 0;
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) {
    if constexpr (Codec::saturates) { inspect_word<Codec>(ctx, words[w], squares, at_limit); }
    unpack_word<Codec>(ctx, words[w], v + w * lanes::lanes);
  }

  // Every register carries the same offset. Small lanes keep it through the inverse transform, which gathers it in the
  // first coordinate: integers below 2^24 add exactly.
  constexpr float exponent_offset = bits == 16 ? 0.0f : bits == 8 ? 8388608.0f : 128.0f;
  float const zero =
    exponent_offset + static_cast<float>(reducer::biased
                                           ? args.world * Codec::quantizer_type::max_level
                                           : lanes::limit + 1);
  constexpr bool gathers = Codec::rotates_chunks && bits <= 4;
  if constexpr (!gathers) {
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
  }
  hadamard::to_loaded(ctx, v, storage, mine.thread, mine.first);
  if constexpr (gathers) {
    v[0] = Context::subtract(v[0], mine.thread == 0 ? zero * Codec::chunk_size : 0.0f);
  }

  std::uint32_t step_bits =
    mine.active ? Context::bits(ctx.load(&args.steps[mine.chunk].decode)) : 0;
  std::uint32_t const word =
    Codec::rotates_chunks
      ? sign_bits(mine.chunk * (Codec::chunk_size / 32) + mine.thread,
                  args.header->sign_key)
      : 0;
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    v[i] =
      Context::multiply(v[i], Context::from_bits(step_bits ^ ((word << (31 - i)) & 0x80000000u)));
  }
  if constexpr (Codec::rotates_all) {
    store_share<false>(ctx, args.rotated, mine, v);
  } else {
    store_share<Edge>(ctx, args.gradient, mine, v);
  }

  if constexpr (Codec::saturates) {
    hadamard::synchronize(ctx);
    at_limit = chunk_sum(ctx, at_limit, mine, storage);
    if constexpr (Codec::tracks) { squares = chunk_sum(ctx, squares, mine, storage); }
    if (mine.active && mine.thread == 0) {
      ctx.store(&args.steps[mine.chunk].saturated, at_limit);
      if constexpr (Codec::tracks) { ctx.store(&args.steps[mine.chunk].square_sum, squares); }
    }
  }
}

}  // namespace tersum::inline v0::detail
