// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Values to codes, and codes to words of the wire: kernel body parts.

#pragma once

#include <tersum/config.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/uniform_grid.hpp>
#include <tersum/random/philox.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Where a rounded value keeps its code: this many bits up, above the fraction if there is one.
template <class Codec>
inline constexpr int field_shift = Codec::quantizer_type::fraction_bits == 8 ? 8 : 0;

//! @brief Whether a quantizer rounds to a table of which a warp holds the part that it looks up: a step a lane.
template <class Quantizer>
inline constexpr bool table_in_lanes = false;

template <class Quantizer>
requires requires { Quantizer::table::lowest; }
inline constexpr bool table_in_lanes<Quantizer> =
  Quantizer::table::granularity - Quantizer::table::lowest < 32;

//! @brief Rounds the 16 values that share one draw. A field holds code + max_level, which is not negative, `field_shift`
//! bits up.
//! @param draw  Number of the draw: the first value's position on the wire, over the whole payload, by 16.
template <class Codec, class Context>
TERSUM_BODY void round_sixteen(Context const& ctx,
                               Codec const& codec,
                               dither_key const& key,
                               std::uint32_t mask,
                               std::uint64_t draw,
                               float scale,
                               float const* v,
                               std::uint32_t (&fields)[16])
{
  using quantizer     = typename Codec::quantizer_type;
  using dither        = typename Codec::dither_type;
  constexpr int limit = quantizer::max_level;
  philox_block random{};
  if constexpr (dither::rounds > 0) {
    random =
      philox4x32<dither::rounds, typename Context::product>(dither::counter(draw, key), key.seed);
  }
  // Where chunks are chosen a warp may be about several things.
  constexpr bool shuffles = table_in_lanes<quantizer> && !Codec::selects;
  std::uint32_t step      = 0;
  if constexpr (shuffles) {
    constexpr unsigned lowest = quantizer::table::lowest;
    unsigned const mine       = lowest + (ctx.thread_rank() - lowest) % 32;
    step                      = static_cast<std::uint32_t>(
      quantizer::table::enclose_packed(static_cast<std::int32_t>(256 * mine)));
  }
  TERSUM_UNROLL
  for (int i = 0; i < 16; ++i) {
    std::uint32_t const word = random.word[i / 4] ^ mask;
    if constexpr (requires { quantizer::rounds_to_grid; }) {
      // As round_to_grid, with the random byte put under the constant by one byte selection, and without its guard
      // against values beyond 2^23 units: `settle_chunk` keeps them below.
      constexpr int unit           = 1 << quantizer::fraction_bits;
      constexpr std::uint32_t base = static_cast<std::uint32_t>(limit * unit) - 0x4b400000u;
      std::uint32_t addend         = base;
      if constexpr (quantizer::fraction_bits == 8) {
        addend = Context::select_bytes(word, base, 0x7650u | static_cast<unsigned>(i % 4));
      }
      float const shifted = Context::fma(v[i], scale, 12582912.0f);
      fields[i]           = static_cast<std::uint32_t>(
        Context::add_clamp(static_cast<std::int32_t>(Context::bits(shifted)),
                           static_cast<std::int32_t>(addend),
                           2 * limit * unit + unit - 1));
    } else if constexpr (shuffles) {
      std::uint32_t const byte = (word >> (8 * (i % 4))) & 0xffu;
      std::int32_t const x     = quantizer::place(v[i], scale);
      auto const between       = quantizer::table::unpack(
        static_cast<std::int32_t>(ctx.shuffle(step, static_cast<std::uint32_t>(x >> 8))));
      fields[i] = static_cast<std::uint32_t>(quantizer::choose(x, between, v[i], byte) + limit)
                  << field_shift<Codec>;
    } else {
      std::uint32_t const byte = (word >> (8 * (i % 4))) & 0xffu;
      fields[i] = static_cast<std::uint32_t>(codec.quantizer.encode(v[i], scale, byte) + limit)
                  << field_shift<Codec>;
    }
  }
}

//! @brief One wire word from its fields.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t pack_fields(Context const&, std::uint32_t const* fields)
{
  using lanes         = typename Codec::lanes;
  constexpr bool high = field_shift<Codec> == 8;  // codes lie in byte 1 or 0
  constexpr int limit = Codec::quantizer_type::max_level;
  std::uint32_t word  = 0;
  if constexpr (lanes::bits == 16) {
    word = Context::select_bytes(fields[0], fields[1], high ? 0x6521u : 0x5410u);
  } else {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      constexpr std::uint32_t pair = high ? 0x0051u : 0x0040u;
      std::uint32_t const low = Context::select_bytes(fields[s], fields[s + interleaved], pair);
      std::uint32_t const upper =
        Context::select_bytes(fields[s + 2 * interleaved], fields[s + 3 * interleaved], pair);
      word += Context::select_bytes(low, upper, 0x5410u) << (lanes::bits * s);
    }
  }
  if constexpr (!Codec::reducer_type::biased) {
    constexpr std::uint32_t lift =
      lanes::ones * static_cast<std::uint32_t>(lanes::limit + 1 - limit);
    word = (word + lift) ^ lanes::signs;
  }
  return word;
}

}  // namespace tersum::inline v0::detail
