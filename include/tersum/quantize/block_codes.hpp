// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a chunk in registers: rounded and packed, and back.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_decode.hpp>
#include <tersum/quantize/detail/block_lane_sums.hpp>
#include <tersum/quantize/detail/block_round.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief Codes of a chunk of `Size` in the *wire* arrangement of `block_chunk`, as a codec of these policies sends
//! them.
//!
//! A thread's 32 codes take `words` words. Words of `saturating_sum` are added one by one by its `op`; payloads of
//! other reducers are arrays of their `op::element`. Given the chunk's number, step, seed and rank of an exchange of
//! the library, `encode` makes the library's words.
//!
//! All threads of the warp must call `encode`. The other functions concern one thread.
//!
//! @par Example: from sums to coordinates
//! @snippet examples/04_inside_your_kernel.hpp decode
//! @tparam Size       Coordinates in a chunk.
//! @tparam Quantizer  `stochastic_quantizer<q>`, `nearest_quantizer<q>`, or one of your own.
//! @tparam Reducer    `saturating_sum<b>`, `widening_sum<q, b>` or `guard_lanes<b>`: what lanes are like.
template <int Size, quantizer Quantizer, reducer Reducer>
struct block_codes {
  using chunk = block_chunk<Size>;

  static constexpr int words =
    Reducer::lane_bits;  //!< Words of a thread: as many as a lane has bits.

  [[no_unique_address]] Quantizer quantizer{};

  //! @brief Rounds and packs.
  //! @param ctx     The machine.
  //! @param mine    This thread's chunk; `mine.chunk` numbers the random numbers.
  //! @param key     Makes the random numbers: seed, step and this rank.
  //! @param scale   `chunk_step::encode` of `make_chunk_step`: no value times it may exceed 2^23. With 0 all codes are 0,
  //!                whatever the values are.
  //! @param v       The values, wire arrangement.
  //! @param packed  Receives the words.
  template <block_context Context>
  TERSUM_BODY void encode(Context const& ctx,
                          chunk const& mine,
                          dither_key const& key,
                          float scale,
                          float const (&v)[32],
                          std::uint32_t (&packed)[words]) const
  {
    codec_type const codec{.quantizer = quantizer};
    std::uint32_t const kept = scale == 0.0f ? 0u : 0xffffffffu;
    TERSUM_UNROLL
    for (int half_of = 0; half_of < 2; ++half_of) {
      std::uint32_t fields[8];
      std::uint64_t const draw = share(mine) * 2 | static_cast<unsigned>(half_of);
      detail::round_sixteen(ctx, codec, key, mask(key), draw, scale, v + 16 * half_of, fields);
      detail::pack_fields<codec_type>(ctx, fields, packed + half_of * (words / 2));
    }
    TERSUM_UNROLL
    for (int w = 0; w < words; ++w) {
      packed[w] = (packed[w] & kept) | (codec_type::zero_word & ~kept);
    }
  }

  //! @brief Codes, or sums of the codes of `world` ranks, as floats of the same integers.
  template <block_context Context>
  TERSUM_BODY static void decode(Context const& ctx,
                                 std::uint32_t const (&packed)[words],
                                 int world,
                                 float (&v)[32])
  {
    using values = detail::lane_values<codec_type, true>;
    values::unpack(ctx, packed, v);
    float const zero = values::zero(world);
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
  }

  //! @brief This thread's words of a payload; zeros where the chunk does not exist.
  //! @param ctx      The machine.
  //! @param mine     This thread's chunk.
  //! @param payload  The payload of all chunks, aligned to 16 bytes.
  //! @param packed   Receives the words.
  template <block_context Context>
  TERSUM_BODY static void load(Context const& ctx,
                               chunk const& mine,
                               std::uint32_t const* payload,
                               std::uint32_t (&packed)[words])
  {
    std::uint32_t squares = 0, at_limit = 0;
    detail::load_words<codec_type>(
      ctx, payload + share(mine) * words, mine.exists(), packed, squares, at_limit);
  }

  //! @brief Writes this thread's words where the library would.
  template <block_context Context>
  TERSUM_BODY static void store(Context const& ctx,
                                chunk const& mine,
                                std::uint32_t const (&packed)[words],
                                std::uint32_t* payload)
  {
    if (!mine.exists()) { return; }
    std::uint32_t* const to = payload + share(mine) * words;
    if constexpr (words == 2) {
      ctx.store(reinterpret_cast<std::uint64_t*>(to),
                packed[0] | static_cast<std::uint64_t>(packed[1]) << 32);
    } else {
      TERSUM_UNROLL
      for (int w = 0; w < words; w += 4) {
        ctx.store(reinterpret_cast<word4*>(to + w),
                  word4{packed[w], packed[w + 1], packed[w + 2], packed[w + 3]});
      }
    }
  }

 private:
  using codec_type =
    codec<fixed_chunks<Size>, partial_hadamard<Size>, rms_range<no_headroom>, Quantizer, Reducer>;

  //! The number of this thread's 32 coordinates, counted over all chunks.
  [[nodiscard]] TERSUM_BODY static std::uint64_t share(chunk const& mine)
  {
    return mine.chunk * (Size / 32) + mine.thread;
  }

  [[nodiscard]] TERSUM_BODY static std::uint32_t mask(dither_key const& key)
  {
    if constexpr (requires { Quantizer::dither::mask(key); }) {
      return Quantizer::dither::mask(key);
    }
    return 0;
  }
};

}  // namespace tersum::inline v0
