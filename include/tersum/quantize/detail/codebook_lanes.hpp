// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codebooks of few levels in the registers of a warp, whose lanes look up in each other: kernel body parts.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/cell_places.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::detail {

//! @brief The levels of all codes, which are repeated.
template <table_codebook Quantizer>
struct lane_levels {
  float level[32];

  [[nodiscard]] static constexpr lane_levels make() noexcept
  {
    lane_levels out{};
    for (int i = 0; i < 32; ++i) {
      float const level = Quantizer::levels()[i % Quantizer::magnitudes];
      out.level[i]      = i / Quantizer::magnitudes % 2 == 0 ? level : -level;
    }
    return out;
  }
};

template <class Quantizer>
inline constexpr lane_levels<Quantizer> lane_levels_of = lane_levels<Quantizer>::make();

//! @brief A codebook of which each lane of a warp holds one entry of each of two tables. A shuffle looks it up, in fewer
//! instructions than shared memory takes. All lanes of the warp must look up together.
template <table_codebook Quantizer>
struct codebook_lanes {
  static constexpr int half = Quantizer::magnitudes;
  static constexpr int bits = Quantizer::bits;

  //! Whether codes are decoded in this way.
  static constexpr bool decodes = half > 1 && half <= 8;

  //! Whether values are encoded in this way.
  static constexpr bool encodes = decodes && has_places<Quantizer>;

  //! @brief The level of the code that is this lane's number modulo the number of codes.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float of_code(Context const& ctx)
  {
    static constexpr lane_levels<Quantizer> source = lane_levels_of<Quantizer>;
    return source.level[ctx.thread_rank() % 32];
  }

  //! @brief Code k of a thread's words, with bits of others above it. They do no harm: the lanes hold the codes several times over.
  [[nodiscard]] TERSUM_BODY static std::uint32_t code(std::uint32_t const (&words)[extent(bits)],
                                                      int k)
  {
    int const word = k * bits / 32, shift = k * bits % 32;
    std::uint32_t const low = words[word] >> shift;
    return shift + bits > 32 ? low | words[word + 1] << (32 - shift) : low;
  }

  //! @brief Adds scale times the levels of a thread's codes to its values.
  template <class Context>
  TERSUM_BODY static void add_codes(Context const& ctx,
                                    std::uint32_t const (&words)[extent(bits)],
                                    float scale,
                                    float (&v)[32])
  {
    float const level = of_code(ctx);
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      v[k] = Context::fma(ctx.shuffle(level, code(words, k)), scale, v[k]);
    }
  }

  //! @brief Rounds a thread's values times `scale`, one over the root mean square, to codes. Returns the sum of |v| * level.
  template <class Context>
  TERSUM_BODY static float code_values(Context const& ctx,
                                       float scale,
                                       float const (&v)[32],
                                       std::uint32_t (&words)[static_cast<std::size_t>(bits)])
  {
    static constexpr placed_levels<Quantizer> source = placed_levels_of<Quantizer>;
    std::uint32_t const mine = Context::bits(source.level[ctx.thread_rank() % 32]);
    float const slope        = Context::multiply(scale, Quantizer::slope);
    float product            = 0.0f;
    // The lowest bits of levels enter a word from above. Of a code that ends in the next word the lower ones do.
    std::uint32_t numbers = 0;
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      float const size  = ::fabsf(v[k]);
      float const place = Context::fma_within_one(size, slope, Quantizer::offset);
      std::uint32_t const chosen =
        ctx.shuffle(mine, Context::bits(place) >> cell_places<Quantizer>::shift);
      product         = Context::fma(size, Context::from_bits(chosen), product);
      int const begin = k * bits % 32, end = begin + bits;
      int const enter = end > 32 ? 32 - begin : bits;
      numbers         = (begin == 0 ? chosen : numbers) >> enter | chosen << (32 - enter);
      if (end >= 32) {
        words[k * bits / 32] = numbers;
        numbers              = chosen << (32 - bits);
      }
    }
    // The signs of values enter another one from below.
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      std::uint32_t signs = 0, places = 0;
      TERSUM_UNROLL
      for (int k = 31; k >= 0; --k) {
        int const sign = k * bits + bits - 1;
        if (sign / 32 != w) { continue; }
        int const enter           = sign % 32 < bits - 1 ? sign % 32 + 1 : bits;
        std::uint32_t const value = Context::bits(v[k]);
        signs                     = (places == 0 ? value : signs) << enter | value >> (32 - enter);
        places |= 1u << sign % 32;
      }
      words[w] = (words[w] & ~places) | (signs & places);
    }
    return product;
  }
};

}  // namespace tersum::inline v0::detail
