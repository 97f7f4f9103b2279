// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `group_absmax` on one CPU thread, compiled for each instruction set from one source, and the choice among them.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/part_in_rows.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum_baselines/detail/float_rounding.hpp>
#include <tersum_baselines/detail/group_units.hpp>
#include <tersum_baselines/detail/mark_tree.hpp>
#include <tersum_baselines/group_quantizer.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

#define TERSUM_SIMD_SOURCE <tersum_baselines/detail/group_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

template <class Dither, int Size>
void draw_bytes(instruction_set set, dither_key const& key, std::uint64_t chunk, std::uint8_t* to)
{
  TERSUM_DISPATCH(set, true, draw_bytes<Dither, Size>(key, chunk, to));
}

template <class Quantizer, int Size>
[[nodiscard]] float encode_blocks(instruction_set set,
                                  float const* values,
                                  std::uint8_t const* random,
                                  std::uint32_t* to)
{
  TERSUM_DISPATCH(set, true, encode_blocks<Quantizer, Size>(values, random, to));
}

template <class Quantizer, int Size>
void add_blocks(instruction_set set, std::uint32_t const* from, float whole, float* values)
{
  TERSUM_DISPATCH(set, true, add_blocks<Quantizer, Size>(from, whole, values));
}

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_SIMD_SOURCE

//! @brief Values lie as in the gradient, since these chunks are not rotated in registers.
template <group_quantizer Quantizer, int Size>
struct chunk_codes<Quantizer, Size> {
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
      return encode_blocks<Quantizer, Size>(set, values, random, to);
    } else {
      return encode_blocks<Quantizer, Size>(set, values, nullptr, to);
    }
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    if (fresh) { std::fill_n(values, Size, 0.0f); }
    add_blocks<Quantizer, Size>(set, from, scale, values);
  }
};

}  // namespace tersum::inline v0::detail
