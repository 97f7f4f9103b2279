// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of chunks of 1024 back to coordinates by products of tiles, in the registers of a warp: kernel body.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/detail/block_decode.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Whether whole, aligned chunks of a codec are decoded by `tile_decode`.
template <class Codec>
inline constexpr bool decodes_on_tiles =
  Codec::chunk_size == 1024 && !selects<Codec> && Codec::rotates_chunks &&
  !Codec::reducer_type::biased && Codec::lanes::bits <= 8 && !in_metric<Codec>;

//! @brief A warp's packed sums to its chunk, transformed and not normalized, without shared memory.
//!
//! All arithmetic is exact, whatever the order in which products are added. The first butterflies make sums of at most four lanes (of lanes
//! of 8 bits none), the first product sums of sixteen of those: integers up to 2^11, which halves hold. The last sums are below 2^24, which
//! floats hold. So the result has the bits of `block_hadamard::to_loaded`, and it needs no policy to choose this way.
//!
//! The table tells where the bits of the index within the chunk lie, before (f) and after (e) their butterflies. i0, i1, i2 are the three
//! that number the eight words of bytes, and j0 and j1 those that number a byte in its word. In lanes of 2 bits they are f3, f4, f7 and f5,
//! f6; in lanes of 4 bits f3, f6, f7 and f4, f5; in lanes of 8 bits f5, f6, f7 and f3, f4, and there i1 and i2 come last.
//!
//!                      lane bits 0 to 4    registers
//!     on the wire      f0 f1 f2 f8 f9      i0 i1 i2, j0, j1 (halves of a word)
//!     on bytes         f0 f1 f2 f8 f9      i0 i1 i2, j0, j1                      does i1 i2
//!     first product    f8 f9 e0 j0 j1      f2 (halves of a word) e1 i0 i1 i2     does f0 f1 j0 j1
//!     second product   j0 j1 i0 e8 e9      e0 e1 e2 i1 i2                        does f2 f8 f9 i0
//!       to floats      j0 j1 i0 e8 e2      e0 e1 e9 i1 i2
//!
//! A thread ends with four rows of eight neighbours, numbered by i1 and i2, which are sixteen bytes each. Where they are
//! floats, it ends with four rows of four neighbours in either half of the chunk, so that a store of sixteen bytes a lane
//! fills whole sectors: the neighbours of its four are in another lane.
template <class Codec, class Element>
struct tile_decode {
  using lanes               = typename Codec::lanes;
  static constexpr int bits = lanes::bits;
  static constexpr int row =
    bits == 2 ? 16 : 64;                  //!< Coordinates from a row to the next one of i1.
  static constexpr int byte = 64 / bits;  //!< Coordinates from a byte to the next one of j0.
  static constexpr int word =
    bits == 8 ? 32 : 8;  //!< Coordinates from a word to the next one of i0.

  static constexpr bool quads = sizeof(Element) == 4;  //!< Whether rows have four neighbours.

  //! The first coordinate of a row: additive over lane and row.
  [[nodiscard]] TERSUM_BODY static unsigned coordinate(unsigned lane, unsigned number)
  {
    unsigned const within = (lane & 3u) * byte + (lane >> 2 & 1u) * word +
                            (quads ? (lane >> 3 & 1u) * 256 + (lane >> 4) * 4 : (lane >> 3) * 256);
    return within + number % 2 * row + number / 2 * 128;
  }

  //! The bit of `signs` for register i.
  [[nodiscard]] TERSUM_INLINE static constexpr int sign_bit(int i) noexcept
  {
    return quads ? i / 8 % 2 * 8 + i / 4 % 2 * 16 + i / 16 * 4 + i % 4 : i;
  }

  //! @brief This lane's signs, in the order of `sign_bit`.
  //!
  //! A word of `sign_bits` covers a row in each quarter of the chunk: lanes of the four quarters draw one of their four
  //! words each, and exchange bytes. Lanes with rows of four exchange bytes of two quarters, and then halves of bytes.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t signs(Context const& ctx,
                                                       std::uint64_t chunk,
                                                       std::uint64_t key,
                                                       unsigned lane)
  {
    unsigned const number   = coordinate(lane & 7u, lane >> 3) / 8;
    std::uint32_t mine      = sign_bits(chunk * 32 + number, key);
    std::uint32_t const one = ctx.shuffle_xor(mine, 8);
    mine = Context::select_bytes(mine, one, (lane & 8u) == 0 ? 0x6240u : 0x3715u);
    std::uint32_t const two = ctx.shuffle_xor(mine, 16);
    if constexpr (quads) {
      bool const second       = (lane & 16u) != 0;
      std::uint32_t const own = second ? 0xf0f0f0f0u : 0x0f0f0f0fu;
      unsigned const turn     = second ? 28u : 4u;
      return (mine & own) | ((two << turn | two >> (32u - turn)) & ~own);
    }
    return Context::select_bytes(mine, two, (lane & 16u) == 0 ? 0x5410u : 0x3276u);
  }

  //! @param words  The words of the thread, as on the wire.
  //! @param v      Out: register 8 r + j is the coordinate j after the first of row r. In rows of four neighbours, registers
  //!               8 r + 4 to 8 r + 7 are those 512 coordinates on.
  template <class Context>
  TERSUM_BODY static void to_rows(Context const& ctx,
                                  std::uint32_t const (&words)[lanes::bits],
                                  unsigned lane,
                                  float (&v)[32])
  {
    std::uint32_t bytes[8];
    lane_values<Codec>::spread(ctx, words, bytes);
    if constexpr (bits < 8) { lane_values<Codec>::template transform_bytes<1, 3>(ctx, bytes); }

    // The bits of a small integer are those of a half that is a multiple of 2^-24. Factors turn 2^-24 into 2^-9, then into 1.
    std::uint32_t a[4], b[4];
    a[0] = 0x78007800u ^ both_signs(lane & lane >> 2) ^ (lane << 27 & 0x80000000u);
    a[1] = a[0] ^ both_signs(lane >> 1);
    a[2] = a[0] ^ both_signs(lane >> 3);
    a[3] = a[1] ^ both_signs(lane >> 3);
    if constexpr (quads) {
      b[0] = 0x60006000u ^ both_signs(lane & lane >> 3) ^ (lane << 27 & 0x80000000u);
      b[1] = b[0] ^ both_signs(lane >> 1);
    } else {
      b[0] = 0x60006000u ^ both_signs((lane & lane >> 3) ^ (lane >> 1 & lane >> 4));
      b[1] = b[0] ^ 0x80000000u;
    }
    b[2] = b[0] ^ both_signs(lane >> 2);
    b[3] = b[1] ^ both_signs(lane >> 2);
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      std::uint32_t d[2][2];
      TERSUM_UNROLL
      for (int i0 = 0; i0 < 2; ++i0) {
        std::uint32_t const four = bytes[2 * r + i0];
        std::uint32_t even       = four & 0x00ff00ffu;
        std::uint32_t odd        = Context::select_bytes(four, 0, 0x4341u);
        if constexpr (bits == 8) {
          // Without the offset: sums of lanes that count from their lowest code would exceed what halves hold.
          even = Context::template add_pair<half>(even, 0x80808080u);
          odd  = Context::template add_pair<half>(odd, 0x80808080u);
        }
        ctx.multiply_tiles_to_half(d[i0], a, even, odd);
      }
      TERSUM_UNROLL
      for (int e1 = 0; e1 < 2; ++e1) {
        float c[4] = {};
        ctx.multiply_tiles(c, b, d[0][e1], d[1][e1]);
        TERSUM_UNROLL
        for (int q = 0; q < 4; ++q) { v[8 * r + q % 2 + 2 * e1 + q / 2 * 4] = c[q]; }
      }
    }
    if constexpr (bits == 8) {
      register_butterflies<3, 5>(ctx, v);
    } else {
      // Lanes count from their lowest code, and so do differences of bytes. Offsets add up in the first coordinate of a row.
      float const zero = lane == 0 ? 1024.0f * (lanes::limit + 1) : 0.0f;
      TERSUM_UNROLL
      for (int r = 0; r < 4; ++r) { v[8 * r] = Context::subtract(v[8 * r], zero); }
    }
  }

 private:
  //! Bit 0 where the signs of both halves of a word are.
  [[nodiscard]] TERSUM_BODY static std::uint32_t both_signs(std::uint32_t bit)
  {
    return (bit & 1u) * 0x80008000u;
  }
};

//! @brief The means of a chunk, signed, to the gradient.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_rows(
  Context const& ctx, Element* to, std::uint32_t signs, float step, unsigned lane, float (&v)[32])
{
  using tiles          = tile_decode<Codec, Element>;
  Element* const first = to + tiles::coordinate(lane, 0);
  if constexpr (sizeof(Element) == 2) {
    // Signs of neighbours flip together.
    std::uint32_t const spread[2] = {Context::select_bytes(signs, signs >> 1, 0x5410u),
                                     Context::select_bytes(signs, signs >> 1, 0x7632u)};
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      std::uint32_t pairs[4];
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        int const p = 4 * r + i;
        pairs[i]    = Context::template pack_finite<Element>(Context::multiply(v[2 * p], step),
                                                          Context::multiply(v[2 * p + 1], step)) ^
                   (spread[p / 8] << (15 - p % 8 * 2) & 0x80008000u);
      }
      ctx.store(reinterpret_cast<word4*>(first + tiles::coordinate(0, static_cast<unsigned>(r))),
                word4{pairs[0], pairs[1], pairs[2], pairs[3]});
    }
  } else {
    // As a condition: nvcc moves a byte of a word to predicates in one instruction, where a shift takes one for each bit.
    float const negated = Context::from_bits(Context::bits(step) ^ 0x80000000u);
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      v[i] = Context::multiply(v[i], (signs >> tiles::sign_bit(i) & 1u) != 0 ? negated : step);
    }
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      Element* const row = first + tiles::coordinate(0, static_cast<unsigned>(r));
      thread_values<4>::store(ctx, v + 8 * r, row);
      thread_values<4>::store(ctx, v + 8 * r + 4, row + 512);
    }
  }
}

}  // namespace tersum::inline v0::detail
