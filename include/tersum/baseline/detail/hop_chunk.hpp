// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The words of one chunk of codes, value by value. This defines what reductions do that decode and encode.

#pragma once

#include <tersum/baseline/detail/group_units.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A chunk of `Size` positions. `estimate` decodes a value from its words and scale; `encode` writes the words of
//! values over zeros, and returns the scale.
template <class Quantizer, int Size>
struct hop_chunk;

template <table_codebook Quantizer, int Size>
struct hop_chunk<Quantizer, Size> {
  static constexpr int bits = Quantizer::bits;

  //! The product is rounded before it is added to anything, so that no compiler can fuse the two.
  [[nodiscard]] static float estimate(std::uint32_t const* words, float scale, int p) noexcept
  {
    return std::fma(Quantizer{}.decode(read_code<bits>(words, p)), scale, 0.0f);
  }

  template <class Dither = no_dither>
  [[nodiscard]] static float encode(float const* v,
                                    std::uint32_t* words,
                                    dither_key const& = {},
                                    std::uint64_t     = 0) noexcept
  {
    float const energy =
      sum_of_positions<Size>([&](int p, float sum) { return std::fma(v[p], v[p], sum); });
    if (!(energy >= 0x1p-100f && is_finite(energy))) {
      return energy < 0x1p-100f ? 0.0f : bits_float(0x7fffffffu);
    }
    float const root    = std::sqrt(static_cast<float>(Size) / energy);
    float const product = sum_of_positions<Size>([&](int p, float sum) {
      std::uint32_t const code = Quantizer{}.encode(v[p] * root);
      write_code<bits>(words, p, code);
      constexpr std::uint32_t magnitudes = Quantizer::magnitudes - 1u;
      return std::fma(std::fabs(v[p]), Quantizer::levels()[code & magnitudes], sum);
    });
    return energy / product;
  }
};

template <group_quantizer Quantizer, int Size>
struct hop_chunk<Quantizer, Size> {
  using scale_type            = typename Quantizer::scale;
  static constexpr int bits   = Quantizer::bits;
  static constexpr int blocks = Size / Quantizer::block;

  [[nodiscard]] static float estimate(std::uint32_t const* words, float scale, int p) noexcept
  {
    std::uint32_t const code   = read_code<bits>(words, p);
    std::uint32_t const number = code & (Quantizer::magnitudes - 1u);
    float const level =
      bits_float(float_bits(Quantizer::level[number]) | (code >> (bits - 1) & 1u) << 31);
    constexpr std::uint32_t full = (1u << scale_type::bits) - 1;
    std::uint32_t const part     = read_code<scale_type::bits>(words + code_words, block_of(p));
    return std::fma(level, scale_type::decode(part & full) * scale, 0.0f);
  }

  //! @param number  Of the chunk, for the draws of its dither.
  template <class Dither>
  [[nodiscard]] static float encode(float const* v,
                                    std::uint32_t* words,
                                    dither_key const& key,
                                    std::uint64_t number) noexcept
  {
    std::uint32_t most[extent(blocks)] = {};
    std::uint32_t largest              = 0;
    for (int p = 0; p < Size; ++p) {
      std::uint32_t const magnitude = float_bits(v[p]) & 0x7fffffffu;
      most[block_of(p)]             = maximum(most[block_of(p)], magnitude);
      largest                       = maximum(largest, magnitude);
    }
    float const whole = bits_float(largest);
    if (!is_finite(whole)) { return bits_float(0x7fffffffu); }
    if (whole < 0x1p-100f) { return 0.0f; }
    float inverse[extent(blocks)];
    for (int block = 0; block < blocks; ++block) {
      std::uint32_t const code = scale_type::encode(bits_float(most[block]) / whole);
      write_code<scale_type::bits>(words + code_words, block, code);
      float const scaled = scale_type::decode(code) * whole;
      inverse[block]     = scaled >= least_block ? static_cast<float>(block_one) / scaled : 0.0f;
    }
    philox_block draw{};
    std::uint32_t mask = 0;
    for (int p = 0; p < Size; ++p) {
      if constexpr (Dither::rounds > 0) {
        if (p % 16 == 0) {
          std::uint64_t const at = number * (Size / 16) + static_cast<unsigned>(p / 16);
          draw                   = philox4x32<Dither::rounds>(Dither::counter(at, key), key.seed);
          mask                   = Dither::mask(key);
        }
      }
      auto const magnitude = static_cast<std::uint32_t>(std::fabs(v[p]) * inverse[block_of(p)]);
      std::uint32_t const level = Quantizer::round(minimum(magnitude, block_one),
                                                   threshold_of<Dither>(draw, mask, p % 16),
                                                   Quantizer::mark.data());
      write_code<bits>(words, p, level | (float_bits(v[p]) >> 31) << (bits - 1));
    }
    return whole;
  }

 private:
  static constexpr int code_words = Size / 32 * bits;

  //! The number of the scale of position p. The scales of the four groups that begin at the same place of the chunk's
  //! quarters are neighbours.
  [[nodiscard]] static constexpr int block_of(int p) noexcept
  {
    return p / 32 / (Quantizer::block / 8) * 4 + p % 32 / 8;
  }
};

}  // namespace tersum::inline v0::detail
