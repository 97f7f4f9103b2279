// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of groups with two ends on one CPU thread: with vectors, compiled for each instruction set from one source, or one value
//! after the other, to the same bits.

#pragma once

#include <tersum/baseline/detail/cpu_group_absmax.hpp>
#include <tersum/baseline/detail/group_line.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0 {

template <int Bits, int Block, dither_source Dither>
struct group_minmax;
template <int Block>
struct group_two_means;

}  // namespace tersum::inline v0

namespace tersum::inline v0::detail {

//! @brief Which vectors do what a quantizer says. A quantizer that is derived from one of these may say something else.
enum class affine_form : std::uint8_t {
  plain,              //!< None do.
  least_and_largest,  //!< As `group_minmax`.
  means_of_signs,     //!< As `group_two_means`.
};

template <class Quantizer>
inline constexpr affine_form form_of_affine = affine_form::plain;
template <int Bits, int Block, class Dither>
inline constexpr affine_form form_of_affine<group_minmax<Bits, Block, Dither>> =
  affine_form::least_and_largest;
template <int Block>
inline constexpr affine_form form_of_affine<group_two_means<Block>> = affine_form::means_of_signs;

#define TERSUM_SIMD_SOURCE <tersum/baseline/detail/affine_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

template <class Quantizer, int Size>
[[nodiscard]] float encode_affine(instruction_set set,
                                  float const* values,
                                  std::uint8_t const* random,
                                  std::uint32_t* to)
{
  TERSUM_DISPATCH(set, true, encode_affine<Quantizer, Size>(values, random, to));
}

template <class Quantizer, int Size, bool Fresh>
void add_affine(instruction_set set, std::uint32_t const* from, float whole, float* values)
{
  TERSUM_DISPATCH(set, true, add_affine<Quantizer, Size, Fresh>(from, whole, values));
}

#undef TERSUM_DISPATCH
#undef TERSUM_SIMD_SOURCE

//! @brief Vectors. Values lie as in the gradient.
template <affine_quantizer Quantizer, int Size>
requires(form_of_affine<Quantizer> != affine_form::plain) struct chunk_codes<Quantizer, Size> {
  template <class Dither>
  [[nodiscard]] static float encode(instruction_set set,
                                    dither_key const& key,
                                    std::uint64_t chunk,
                                    float const* values,
                                    std::uint32_t* to)
  {
    if constexpr (Dither::rounds > 0) {
      alignas(64) std::uint8_t random[extent(Size)];
      draw_bytes<Dither, Size>(set, key, chunk, random);
      return encode_affine<Quantizer, Size>(set, values, random, to);
    } else {
      return encode_affine<Quantizer, Size>(set, values, nullptr, to);
    }
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    fresh ? add_affine<Quantizer, Size, true>(set, from, scale, values)
          : add_affine<Quantizer, Size, false>(set, from, scale, values);
  }
};

//! @brief The plain form: one value after the other. Values lie as in the gradient.
template <affine_quantizer Quantizer, int Size>
struct chunk_codes<Quantizer, Size> {
  static constexpr int block = Quantizer::block;
  static constexpr int bits  = Quantizer::bits;

  template <class Dither>
  [[nodiscard]] static float encode(instruction_set set,
                                    dither_key const& key,
                                    std::uint64_t chunk,
                                    float const* values,
                                    std::uint32_t* to)
  {
    std::fill_n(to, code_words<Quantizer>(Size), 0u);
    std::uint32_t most = 0;
    for (int i = 0; i < Size; ++i) { most = maximum(most, float_bits(values[i]) & 0x7fffffffu); }
    float const whole = bits_float(most);
    if (!is_finite(whole)) { return bits_float(0x7fffffffu); }
    if (whole < 0x1p-100f) { return 0.0f; }
    alignas(64) std::uint8_t random[extent(Size)] = {};
    if constexpr (Dither::rounds > 0) { draw_bytes<Dither, Size>(set, key, chunk, random); }
    for_each_group(to, [&](std::uint32_t& word, int first, unsigned position) {
      word                  = ends_of(values + first, whole);
      group_line const line = line_of<Quantizer>(host_group{}, word, whole);
      for (int i = 0; i < block; ++i) {
        float const value = values[first + i];
        write_code<bits>(to,
                         position_of(position, i),
                         Quantizer::code(value,
                                         place_between<Quantizer>(host_group{}, line, value),
                                         random[first + i]));
      }
    });
    return whole;
  }

  static void add(
    instruction_set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    if (fresh) { std::fill_n(values, Size, 0.0f); }
    for_each_group(from, [&](std::uint32_t word, int first, unsigned position) {
      group_line const line = line_of<Quantizer>(host_group{}, word, scale);
      for (int i = 0; i < block; ++i) {
        std::uint32_t const code =
          read_code<bits>(from, position_of(position, i)) & Quantizer::last;
        values[first + i] = values[first + i] + value_on(host_group{}, line, code);
      }
    });
  }

 private:
  //! visit(word of the ends, first coordinate, position of its code).
  template <class Word, class Visitor>
  static void for_each_group(Word* words, Visitor const& visit)
  {
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
      for (unsigned thread = 0; thread < Size / 32; thread += block / 8) {
        visit(words[ends_word<Quantizer>(Size, thread, quarter)],
              static_cast<int>(quarter * (Size / 4) + 8 * thread),
              32 * thread + 8 * quarter);
      }
    }
  }

  //! Eight neighbours of a group are eight positions, and the next eight lie 32 positions further on.
  [[nodiscard]] static int position_of(unsigned first, int i)
  {
    return static_cast<int>(first) + i / 8 * 32 + i % 8;
  }

  [[nodiscard]] static std::uint32_t ends_of(float const* values, float whole)
  {
    constexpr int threads = block / 8;
    float fields[extent(threads)][extent(Quantizer::fields)];
    for (int t = 0; t < threads; ++t) {
      Quantizer::first(values[8 * t], fields[t]);
      for (int i = 1; i < 8; ++i) {
        float one[extent(Quantizer::fields)];
        Quantizer::first(values[8 * t + i], one);
        Quantizer::join(host_group{}, one, fields[t]);
      }
    }
    for (int step = 1; step < threads; step *= 2) {
      for (int t = 0; t < threads; t += 2 * step) {
        Quantizer::join(host_group{}, fields[t + step], fields[t]);
      }
    }
    return Quantizer::ends(host_group{}, fields[0], whole);
  }
};

}  // namespace tersum::inline v0::detail
