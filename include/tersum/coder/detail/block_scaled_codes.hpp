// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's values of a chunk to codes of a part and back, whatever the quantizer: kernel body parts.

#pragma once

#include <tersum/block/block_norm.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/quantize/block_levels.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Codes of a thread's 32 values of a chunk, under a quantizer. It is specialized here for codebooks, and where other
//! quantizers are. The functions are given the thread's `chunk_in_lanes`.
//!
//! `add` adds `scale` times the decoded codes of the chunk that begin at `codes` to values in wire order. `encode` writes
//! values in wire order, dithered by `key`, as the chunk of a part, and multiplies the chunk's scale by `share_of`. If chunks
//! have codes of several widths, `encode` is that of the widest.
template <class Quantizer>
struct part_codes {
  static_assert(codebook<Quantizer>,
                "tersum: include the header of the quantizer, which has its kernels");

  template <class Part>
  TERSUM_BODY static void add(Part const& own,
                              std::uint32_t const* codes,
                              float scale,
                              float (&v)[32])
  {
    std::uint32_t words[Quantizer::bits];
    thread_codes<Quantizer::bits>::load(own.ctx, codes + own.mine.thread * Quantizer::bits, words);
    if constexpr (needs_none<Part>) {
      block_levels<Part::size, Quantizer>::add(own.ctx, words, scale, v);
    } else {
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        add_level<Quantizer>(own.ctx, own.tables, words, k, scale, v);
      }
    }
  }

  template <class Dither, class Part>
  TERSUM_BODY static void encode(
    Part const& own, float const (&v)[32], dither_key const&, float share_of, std::uint32_t* part)
  {
    using context           = typename Part::context_type;
    bool const travels      = own.mine.active && own.place.level > 0;
    constexpr bool moderate = Part::in_step && table_codebook<Quantizer>;
    auto const code         = [&](float root, bool sound) {
      float product = 0.0f;
      if (Part::in_step || travels) {
        at_level_of(own.map, own.args.codec, own.place.level, [&](auto const& codec) {
          using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
          std::uint32_t words[quantizer::bits];
          if constexpr (needs_none<Part, quantizer>) {
            product = block_levels<Part::size, quantizer>::code(own.ctx, root, v, words);
          } else {
            product = code_values<quantizer>(own.ctx, own.tables, root, v, words);
          }
          TERSUM_UNROLL
          for (int w = 0; w < quantizer::bits; ++w) { words[w] = sound ? words[w] : 0u; }
          thread_codes<quantizer::bits>::store(
            own.ctx, words, part + (own.place.word + own.mine.thread * quantizer::bits));
        });
      }
      return product;
    };
    float const scale = code_chunk<moderate>(own.ctx, own.mine, own.storage, v, code);
    if (travels && own.mine.thread == 0) {
      own.ctx.store(part + own.map.scale_word(own.place.index),
                    context::bits(context::multiply(scale, share_of)));
    }
  }

 private:
  //! Whether no table is looked up: there is none, or all lanes of a warp look up together, in each other's registers.
  template <class Part, class Of = Quantizer>
  static constexpr bool needs_none = !table_codebook<Of> || (Part::in_step && in_lanes<Of>);
};

//! @brief Elements in the order of the gradient, sixteen bytes at a time.
template <conversion Quantizer>
struct part_codes<Quantizer> {
  using element = typename Quantizer::element;

  template <class Part>
  TERSUM_BODY static void add(Part const& own,
                              std::uint32_t const* codes,
                              float scale,
                              float (&v)[32])
  {
    using context = typename Part::context_type;
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      float values[8];
      thread_values<8>::load(
        own.ctx, reinterpret_cast<element const*>(codes) + first_of<Part>(own, r), values);
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) { v[8 * r + i] = context::fma(values[i], scale, v[8 * r + i]); }
    }
  }

  template <class Dither, class Part>
  TERSUM_BODY static void encode(
    Part const& own, float const (&v)[32], dither_key const&, float share_of, std::uint32_t* part)
  {
    using context     = typename Part::context_type;
    float const scale = scale_of_elements<element>(
      block_norm<Part::size>::largest(own.ctx, own.mine, own.storage, v));
    if (!own.mine.active || own.place.level == 0) { return; }
    if (own.mine.thread == 0) {
      own.ctx.store(part + own.map.scale_word(own.place.index),
                    context::bits(context::multiply(scale, share_of)));
    }
    float const inverse = inverse_of_scale(scale);
    auto* const to      = reinterpret_cast<element*>(part + own.place.word);
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      float values[8];
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) {
        values[i] = scale > 0.0f ? context::multiply(v[8 * r + i], inverse) : 0.0f;
      }
      thread_values<8>::store<false>(own.ctx, values, to + first_of<Part>(own, r));
    }
  }

 private:
  //! The first of a thread's coordinates in quarter r.
  template <class Part>
  [[nodiscard]] TERSUM_BODY static unsigned first_of(Part const& own, int r)
  {
    return static_cast<unsigned>(r * (Part::size / 4)) + own.mine.thread * 8;
  }
};

}  // namespace tersum::inline v0::detail
