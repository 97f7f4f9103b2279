// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's values of a chunk to codes of a part and back, whatever the quantizer: kernel body parts.

#pragma once

#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Codes of a thread's 32 values of a chunk, under a quantizer. It is specialized here for codebooks, and where other
//! quantizers are. The functions are given the thread's `own_part`.
//!
//! `add` adds `scale` times the decoded codes of the chunk that begin at `codes` to values in wire order. `encode` writes
//! values in wire order, dithered by `key`, as the chunk of a part, and multiplies the chunk's scale by `share_of`. If chunks
//! have codes of several widths, `encode` is that of the widest.
template <class Quantizer>
struct part_codes {
  static_assert(
    codebook<Quantizer>,
    "tersum: include tersum/baseline/group_absmax.hpp, which has the kernels of quantizers of groups");
};

template <codebook Quantizer>
struct part_codes<Quantizer> {
  template <class Part>
  TERSUM_BODY static void add(Part const& own,
                              std::uint32_t const* codes,
                              float scale,
                              float (&v)[32])
  {
    add_codes<Quantizer, Part::in_step>(
      own.ctx, own.tables, codes + own.mine.thread * Quantizer::bits, scale, v);
  }

  template <class Dither, class Part>
  TERSUM_BODY static void encode(
    Part const& own, float const (&v)[32], dither_key const&, float share_of, std::uint32_t* part)
  {
    using context      = typename Part::context_type;
    constexpr int size = Part::size;
    bool const travels = own.mine.active && own.place.level > 0;
    float squares      = 0.0f;
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { squares = context::fma(v[k], v[k], squares); }
    float const energy = chunk_total(own.ctx, squares, own.mine, own.storage);
    bool const sound   = energy >= 0x1p-100f && is_finite(energy);
    float const root =
      context::square_root(context::divide(static_cast<float>(size), sound ? energy : 1.0f));
    float product = 0.0f;
    if (Part::in_step || travels) {
      at_level(own.args.codec, own.place.level, [&](auto const& codec) {
        using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
        std::uint32_t words[quantizer::bits];
        product = code_values<quantizer, Part::in_step>(own.ctx, own.tables, root, v, words);
        TERSUM_UNROLL
        for (int w = 0; w < quantizer::bits; ++w) { words[w] = sound ? words[w] : 0u; }
        store_codes(own.ctx, part + (own.place.word + own.mine.thread * quantizer::bits), words);
      });
    }
    float const products = chunk_total(own.ctx, product, own.mine, own.storage);
    float scale          = energy < 0x1p-100f ? 0.0f : context::from_bits(0x7fffffffu);
    if (sound) { scale = context::divide(energy, products); }
    if (travels && own.mine.thread == 0) {
      own.ctx.store(part + own.map.scale_word(own.place.index),
                    context::bits(context::multiply(scale, share_of)));
    }
  }
};

}  // namespace tersum::inline v0::detail
