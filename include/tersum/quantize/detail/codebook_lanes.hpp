// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codebooks of few levels in the registers of a warp, whose lanes look up in each other: kernel body parts.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::detail {

//! @brief The tables of `codebook_lanes`.
template <table_codebook Quantizer>
struct lane_tables {
  static constexpr int half   = Quantizer::magnitudes;
  static constexpr int points = 4;  //!< To a root mean square.
  //! More root mean squares than any value of a chunk has.
  static constexpr std::uint32_t none = float_bits(1024.0f);

  //! Whether the levels of all codes fit a warp.
  static constexpr bool fits = half > 1 && half <= 8;

  struct entry {
    std::uint32_t boundary;  //!< In the interval of a point, as a float; `none` if there is none.
    std::uint32_t level;     //!< That of a point; a float, with its sign.
    std::uint32_t of_code;   //!< The level of a code; codes are repeated.
    std::uint32_t unused;    //!< So that one access loads an entry.
  };

  alignas(16) entry lane[32];
  bool sound;  //!< Whether the points serve, and the lowest bits of a level are its number.

  [[nodiscard]] static constexpr lane_tables make() noexcept
  {
    lane_tables out{};
    if constexpr (fits) {
      for (unsigned i = 0; i < 32; ++i) {
        std::uint32_t const magnitude = float_bits(Quantizer::levels()[i % half]);
        out.lane[i].boundary          = none;
        out.lane[i].of_code           = magnitude | (i / half % 2) << 31;
      }
      out.sound = true;
      int found = 0;
      for (int number = 1; number < 2 * half; ++number) {
        int const place = number < half ? half - 1 - number : number - 1 - half;
        float const end = number == half ? 0.0f : Quantizer::boundaries()[place];
        // The nearest point, and whether the value is so far from the ends of its interval that rounding does not matter.
        float const at   = (number < half ? -end : end) * points + 16.5f;
        int const point  = static_cast<int>(at);
        float const past = at - static_cast<float>(point);
        out.sound &= at > 1.0f && at < 31.0f && past > 0x1p-10f && past < 1 - 0x1p-10f;
        if (!out.sound) { return out; }
        out.sound &= out.lane[point].boundary == none;
        // A value below zero takes the larger level if its magnitude is not below the boundary.
        std::uint32_t const bits_of = float_bits(end);
        out.lane[point].boundary    = number < half ? (bits_of - 1) | 0x80000000u : bits_of;
        while (found <= point) { out.lane[found++].level = level_bits(number - 1); }
      }
      while (found < 32) { out.lane[found++].level = level_bits(2 * half - 1); }
      for (unsigned i = 0; i < half; ++i) { out.sound &= (out.lane[i].of_code & (half - 1u)) == i; }
    }
    return out;
  }
  //! Of the levels of both signs, ascending.
  [[nodiscard]] static constexpr std::uint32_t level_bits(int number) noexcept
  {
    bool const below = number < half;
    return float_bits(Quantizer::levels()[below ? half - 1 - number : number - half]) |
           (below ? 0x80000000u : 0u);
  }
};

//! @brief The tables of a codebook, computed by the host's compiler; device code has a copy.
template <class Quantizer>
inline constexpr lane_tables<Quantizer> lane_tables_of = lane_tables<Quantizer>::make();

//! @brief A codebook of which each lane of a warp holds one entry of each of three tables. A shuffle looks it up, in fewer
//! instructions than shared memory takes.
//!
//! All lanes of the warp must look up together. Values in root mean squares have points, `points` to a root mean square, of
//! which each lane has one; a value belongs to the nearest. The levels of both signs are numbered ascending, and a point
//! has at most one boundary between them. So the number of a value's point, one more if it is not below the boundary
//! there, is a lane that has the level: that below the boundary of its point, if it has one.
template <table_codebook Quantizer>
struct codebook_lanes {
  static constexpr int half = Quantizer::magnitudes;
  static constexpr int bits = Quantizer::bits;

  //! Whether codes are decoded in this way.
  static constexpr bool decodes = lane_tables<Quantizer>::fits && 32 % bits == 0;

  //! Whether values are encoded in this way.
  static constexpr bool encodes = decodes && lane_tables<Quantizer>::make().sound;

  //! @brief The level of the code that is this lane's number modulo the number of codes.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float of_code(Context const& ctx)
  {
    static constexpr lane_tables<Quantizer> source = lane_tables_of<Quantizer>;
    return Context::from_bits(source.lane[ctx.thread_rank() % 32].of_code);
  }

  //! @brief Adds scale times the levels of a thread's codes to its values.
  template <class Context>
  TERSUM_BODY static void add_codes(Context const& ctx,
                                    std::uint32_t const (&words)[extent(bits)],
                                    float scale,
                                    float (&v)[32])
  {
    // The lanes hold the codes several times over, so that bits above those of the code do no harm.
    float const level = of_code(ctx);
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      v[k] = Context::fma(ctx.shuffle(level, words[k * bits / 32] >> k * bits % 32), scale, v[k]);
    }
  }

  //! @brief Rounds a thread's values times `scale`, one over the root mean square, to codes. Returns the sum of |v| * level.
  //! @tparam OneScale  Whether all lanes have the same scale, so that they can compare with each other's boundaries over it.
  template <bool OneScale = true, class Context>
  TERSUM_BODY static float code_values(Context const& ctx,
                                       float scale,
                                       float const (&v)[32],
                                       std::uint32_t (&words)[static_cast<std::size_t>(bits)])
  {
    static constexpr lane_tables<Quantizer> source = lane_tables_of<Quantizer>;
    word4 const mine =
      ctx.load(reinterpret_cast<word4 const*>(source.lane + ctx.thread_rank() % 32));
    float const at_one        = Context::from_bits(mine.x);
    float const boundary      = OneScale ? least_reaching(ctx, scale, at_one) : at_one;
    constexpr auto points     = static_cast<float>(lane_tables<Quantizer>::points);
    float const in_points     = OneScale ? Context::multiply(scale, points) : points;
    std::uint32_t const level = mine.y;
    constexpr int in_word     = 32 / bits;
    float product             = 0.0f;
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      // A level's lowest bits enter a word from above, and the signs of values another one from below.
      std::uint32_t numbers = 0;
      std::uint32_t signs   = 0;
      TERSUM_UNROLL
      for (int k = in_word * w; k < in_word * (w + 1); ++k) {
        float const compared = OneScale ? v[k] : Context::multiply(v[k], scale);
        float const shifted  = Context::fma(compared, in_points, 8388624.0f);
        auto const point     = static_cast<std::uint32_t>(
          Context::add_clamp(static_cast<std::int32_t>(Context::bits(shifted)), -0x4b000000, 31));
        // This point's lane, or the next.
        std::uint32_t const at =
          Context::count_reached(point, compared, ctx.shuffle(boundary, point));
        std::uint32_t const chosen = ctx.shuffle(level, at);
        product                    = Context::fma(v[k], Context::from_bits(chosen), product);
        numbers                    = numbers >> bits | chosen << (32 - bits);
      }
      TERSUM_UNROLL
      for (int k = in_word * (w + 1) - 1; k >= in_word * w; --k) {
        signs = signs << bits | Context::bits(v[k]) >> (32 - bits);
      }
      constexpr std::uint32_t ones = 0xffffffffu / ((1u << bits) - 1);
      words[w]                     = (numbers & ones * (half - 1u)) | (signs & ones * half);
    }
    return product;
  }

 private:
  //! @brief The least value whose product with a scale is not below a boundary. It is the quotient or one of its neighbours.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float least_reaching(Context const&, float scale, float boundary)
  {
    float const quotient     = Context::divide_moderate(boundary, scale);
    std::uint32_t const bits = Context::bits(quotient);
    std::uint32_t const up   = bits >> 31 != 0 ? 0xffffffffu : 1u;
    float const below        = Context::from_bits(bits - up);
    bool const is_reached    = Context::multiply(quotient, scale) >= boundary;
    float const above        = is_reached ? quotient : Context::from_bits(bits + up);
    return Context::multiply(below, scale) >= boundary ? below : above;
  }
};

}  // namespace tersum::inline v0::detail
