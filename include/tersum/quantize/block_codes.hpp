// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a chunk in registers: rounded and packed, and back.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/thread_codes.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/block_decode.hpp>
#include <tersum/quantize/detail/block_encode.hpp>
#include <tersum/quantize/detail/coding.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief Codes of a chunk of `Size` in the *wire* arrangement of `block_chunk`, as a codec of these policies sends them.
//!
//! A thread's 32 codes take `words` words. Words of `saturating_sum` are added one by one by its `op`; payloads of
//! other reducers are arrays of their `op::element`. Given the chunk's number, step, seed and rank of an exchange of
//! the library, `encode` makes the library's words.
//!
//! All threads of the warp must call `encode`. The other functions concern one thread. It needs no shared memory. On sm_90 a value
//! takes 7 instructions to encode with 4 bits, random numbers and packing included, and 5 to decode.
//!
//! @par Example: from sums to coordinates
//! @snippet examples/kernels/inside_your_kernel.hpp decode
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
  //! @param scale   `chunk_step::encode` of `make_chunk_step`: no value times it may exceed 2^23. With 0 all codes are 0.
  //! @param v       The values, wire arrangement.
  //! @param packed  Receives the words.
  template <block_context Context>
  TERSUM_BODY void encode(Context const& ctx,
                          chunk const& mine,
                          dither_key const& key,
                          float scale,
                          float const (&v)[32],
                          std::uint32_t (&packed)[detail::extent(words)]) const
  {
    float codes[32];
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { codes[k] = v[k]; }
    detail::encode_words(ctx,
                         coding{.coder = {.quantizer = quantizer}},
                         key,
                         detail::dither_mask<typename Quantizer::dither>(key),
                         number(mine),
                         scale,
                         codes,
                         packed);
  }

  //! @brief Codes, or sums of the codes of `world` ranks, as floats of the same integers.
  template <block_context Context>
  TERSUM_BODY static void decode(Context const& ctx,
                                 std::uint32_t const (&packed)[detail::extent(words)],
                                 int world,
                                 float (&v)[32])
  {
    using values = detail::lane_values<coding, true>;
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
                               std::uint32_t (&packed)[detail::extent(words)])
  {
    std::uint32_t squares = 0, at_limit = 0;
    detail::load_words<coding>(
      ctx, payload + number(mine) * words, mine.exists(), packed, squares, at_limit);
  }

  //! @brief Writes this thread's words where the library would.
  template <block_context Context>
  TERSUM_BODY static void store(Context const& ctx,
                                chunk const& mine,
                                std::uint32_t const (&packed)[detail::extent(words)],
                                std::uint32_t* payload)
  {
    if (mine.exists()) { thread_codes<words>::store(ctx, packed, payload + number(mine) * words); }
  }

 private:
  using coding = detail::coding<Size, Quantizer, Reducer>;

  //! The number of this thread's 32 coordinates, counted over all chunks.
  [[nodiscard]] TERSUM_BODY static std::uint64_t number(chunk const& mine)
  {
    return mine.chunk * (Size / 32) + mine.thread;
  }
};

}  // namespace tersum::inline v0
