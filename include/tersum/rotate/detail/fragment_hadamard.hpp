// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The Hadamard transform of 16-bit chunks as products of tiles, in the registers of a warp: kernel body.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Whether a codec's rotator is one on tensor cores.
template <class Codec>
concept wants_tiles = has_tensor_cores<typename Codec::rotator_type>;

//! @brief Whether a codec's chunks of `Element` are encoded by `tile_hadamard`: see `tensor_core_hadamard`.
template <class Codec, class Element>
inline constexpr bool encodes_on_tiles =
  wants_tiles<Codec> && sizeof(Element) == 2 && !feeds_back<Codec> &&
  !in_metric<Codec> && Codec::chunk_size >= 256 && Codec::chunk_size <= 1024;

//! @brief Chunks of `Size` in the registers of a warp, from the loaded arrangement of `block_hadamard` (two neighbours a
//! word) to its wire arrangement, transformed and not normalized.
//!
//! Bits of the index within a chunk of 1024, before (e) and after (f) their butterflies, and who holds them:
//!
//!                      lane bits 0 to 4    registers
//!     loaded           e3 e4 e5 e6 e7      e0 (halves of a word) e1 e2 e8 e9
//!     first product    e6 e7 f3 f0 f1      f4 e5 e2 e8 e9                   does e0 e1 e3 e4
//!     exchange         e8 e9 f3 f0 f1      e2 (halves of a word) e5 f4 e6 e7
//!     second product   f0 f1 f2 f8 f9      f3 f4 f5 f6 f7                   does e2 e5 e6 e7 e8 e9
//!
//! The second product does e6 and e7 by adding four products. Smaller chunks have fewer bits and share the warp: the
//! highest lane bits number them, and the second product leaves those bits as they are.
//!
//! Between the products values are rounded to half. They are multiplied by a power of two near the scale of the codes
//! before, so that they lie where halves are finest.
template <int Size, class Element>
struct tile_hadamard {
  static constexpr int log           = log2_exact(Size);
  static constexpr bool fills_warp   = Size == 1024;  //!< Otherwise a warp holds 1024/Size chunks.
  static constexpr int exchange_bits = log - 8;       //!< Index bits that come to the lanes.

  //! @brief The exponent of the power of two by which a chunk is multiplied on the way.
  //!
  //! After the whole transform, values times `scale` are below 2^23 (see `step_of_chunk`). So are the sums of sixteen
  //! after the first product, since they are means of such values with signs. The power of two takes them below 2^15,
  //! which halves hold, and is itself a normal number of `Element`.
  //! @param scale  Of the encoder, or 0.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static int exponent(Context const&, float scale)
  {
    constexpr int bias = std::is_same_v<Element, half> ? 15 : 127;
    int const wanted   = static_cast<int>(Context::bits(scale) >> 23) - (127 + 8);
    return minimum(maximum(wanted, 1 - bias), bias);
  }

  //! @brief That exponent where no scale is known yet: sixteen times the largest magnitude stays below 2^15.
  //! @param pairs  Of a chunk that fills the warp.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static int exponent_below(Context const& ctx,
                                                      std::uint32_t const (&pairs)[16])
  {
    std::uint32_t most = 0;
    TERSUM_UNROLL
    for (int p = 0; p < 16; ++p) { most = Context::max_pair(most, pairs[p] & 0x7fff7fffu); }
    std::uint32_t const largest = ctx.warp_max(maximum(most >> 16, most & 0xffffu));
    float const magnitude = Context::value(Element::from_bits(static_cast<std::uint16_t>(largest)));
    constexpr int bias    = std::is_same_v<Element, half> ? 15 : 126;
    int const wanted      = 127 + 10 - static_cast<int>(Context::bits(magnitude) >> 23);
    return minimum(maximum(wanted, 1 - bias), bias);
  }

  //! @brief scale / 2^exponent, for what comes out.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float remaining_scale(Context const&, float scale, int exponent)
  {
    return Context::from_bits(Context::bits(scale) - (static_cast<std::uint32_t>(exponent) << 23));
  }

  //! @brief The chunk, counted within the warp, whose values a lane holds between the products.
  [[nodiscard]] TERSUM_BODY static unsigned chunk_between(unsigned lane)
  {
    return lane % 4 >> exchange_bits;
  }

  //! @param pairs     Word 4 r + j: coordinates r Size/4 + 8 t + 2 j and its neighbour, of thread t. All finite.
  //! @param exponent  Of the chunk; where the warp holds several, of the one of `chunk_between`.
  //! @param storage   2560 bytes, aligned to 16, that the warp shares; free again after the next barrier.
  //! @param v         Out: coordinate at wire position 32 t + k, times 2^exponent, in register k.
  template <class Context>
  TERSUM_BODY static void to_wire(Context const& ctx,
                                  std::uint32_t const (&pairs)[16],
                                  int exponent,
                                  word4* storage,
                                  unsigned lane,
                                  float (&v)[32])
  {
    word4 words[4];
    first_product(ctx, pairs, exponent, lane, words);
    if constexpr (exchange_bits > 0) { exchange(ctx, words, storage, lane); }
    second_product(ctx, words, lane, v);
  }

 private:
  static constexpr std::uint32_t signs = 0x80008000u;

  //! A bit of the lane, where the signs of both halves of a word are, among other bits.
  [[nodiscard]] TERSUM_BODY static std::uint32_t at_signs(unsigned lane, int bit)
  {
    return lane * (0x80008000u >> bit);
  }

  // Row m of the result is m0 = f3, m1 = f0, m2 = f1, m3 = f4; column k of the factor k0 = e0, k1 = e3, k2 = e4, k3 = e1.
  template <class Context>
  TERSUM_BODY static void first_product(Context const& ctx,
                                        std::uint32_t const (&pairs)[16],
                                        int exponent,
                                        unsigned lane,
                                        word4 (&words)[4])
  {
    constexpr bool is_half = std::is_same_v<Element, half>;
    std::uint32_t const one =
      is_half ? static_cast<std::uint32_t>((fills_warp ? exponent : 0) + 15) << 10
              : static_cast<std::uint32_t>((fills_warp ? exponent : 0) + 127) << 7;
    std::uint32_t a[4];
    a[0] =
      (one * 0x00010001u) ^ (at_signs(lane & lane >> 2, 0) & signs) ^ (lane << 28 & 0x80000000u);
    a[1] = a[0] ^ (at_signs(lane, 1) & signs);
    a[2] = a[0] ^ (at_signs(lane, 4) & signs);
    a[3] = a[1] ^ (at_signs(lane, 4) & signs);
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      float c[2][4] = {};
      TERSUM_UNROLL
      for (int e2 = 0; e2 < 2; ++e2) {
        ctx.template multiply_tiles<Element>(
          c[e2], a, pairs[4 * r + 2 * e2], pairs[4 * r + 2 * e2 + 1]);
      }
      std::uint32_t packed[4];
      TERSUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        if constexpr (!fills_warp) {
          float const factor = Context::from_bits(static_cast<std::uint32_t>(exponent + 127) << 23);
          c[0][i]            = Context::multiply(c[0][i], factor);
          c[1][i]            = Context::multiply(c[1][i], factor);
        }
        packed[i] = Context::template pack<half>(c[0][i], c[1][i]);
      }
      words[r] = word4{packed[0], packed[1], packed[2], packed[3]};
    }
  }

  // Quads of lanes exchange among themselves. With these strides each of eight lanes accesses four banks of its own.
  template <class Context>
  TERSUM_BODY static void exchange(Context const& ctx,
                                   word4 (&words)[4],
                                   word4* storage,
                                   unsigned lane)
  {
    word4* const quad = storage + lane / 4 * 20;
    unsigned const t  = lane % 4;
    TERSUM_UNROLL
    for (unsigned r = 0; r < 4; ++r) { ctx.store(quad + t + 5 * r, words[r]); }
    ctx.sync_warp();
    TERSUM_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      if constexpr (exchange_bits == 2) {
        words[r] = ctx.load(quad + t * 5 + r);
      } else {
        // e6 was lane bit 0, e7 and e8 were the registers; now e8 is lane bit 0.
        words[r] = ctx.load(quad + (t % 2 * 10 + t / 2 * 2) + (r % 2 + r / 2 * 5));
      }
    }
  }

  // Row m of the result is m0 = f2, m1 = f8, m2 = f9, m3 = f5; column k of the factor k0 = e2, k1 = e8, k2 = e9, k3 = e5.
  template <class Context>
  TERSUM_BODY static void second_product(Context const& ctx,
                                         word4 const (&words)[4],
                                         unsigned lane,
                                         float (&v)[32])
  {
    constexpr unsigned mixed     = (1u << exchange_bits) - 1;
    std::uint32_t const products = lane & lane >> 3 & mixed;
    std::uint32_t entry =
      0x3c003c00u ^ (at_signs(products ^ products >> 1, 0) & signs) ^ (lane << 29 & 0x80000000u);
    if constexpr (!fills_warp) {
      if (((lane ^ lane >> 3) & 3u & ~mixed) != 0) { entry = 0; }
    }
    std::uint32_t const a[4] = {entry, entry, entry, entry ^ signs};
    TERSUM_UNROLL
    for (int f4 = 0; f4 < 2; ++f4) {
      // Sums and differences over e6, then over e7, so that what their products have in common is done once.
      float first[4] = {};
      add_product(ctx, first, a, words[0], f4, false);
      TERSUM_UNROLL
      for (int f6 = 0; f6 < 2; ++f6) {
        float common[4] = {first[0], first[1], first[2], first[3]};
        add_product(ctx, common, a, words[1], f4, f6 == 1);
        TERSUM_UNROLL
        for (int f7 = 0; f7 < 2; ++f7) {
          float c[4] = {common[0], common[1], common[2], common[3]};
          add_product(ctx, c, a, words[2], f4, f7 == 1);
          add_product(ctx, c, a, words[3], f4, f6 != f7);
          TERSUM_UNROLL
          for (int i = 0; i < 4; ++i) { v[i % 2 + 2 * f4 + i / 2 * 4 + 8 * f6 + 16 * f7] = c[i]; }
        }
      }
    }
  }

  //! Adds one product of the second stage, or subtracts it. A negated word costs less than a second factor in registers.
  template <class Context>
  TERSUM_BODY static void add_product(Context const& ctx,
                                      float (&c)[4],
                                      std::uint32_t const (&a)[4],
                                      word4 const& words,
                                      int f4,
                                      bool subtract)
  {
    std::uint32_t const flip = subtract ? signs : 0;
    std::uint32_t const b0   = f4 == 0 ? words.x : words.z;
    std::uint32_t const b1   = f4 == 0 ? words.y : words.w;
    ctx.template multiply_tiles<half>(c, a, b0 ^ flip, b1 ^ flip);
  }
};

}  // namespace tersum::inline v0::detail
