// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of a two-shot codec to codes and back on one CPU thread, whatever the quantizer.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/execute/cpu/vector_kernels.hpp>
#include <tersum/quantize/block_absmax.hpp>
#include <tersum/random/philox.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What each coordinate of a chunk must exceed to be rounded up, as they lie in the gradient.
template <class Dither, int Size>
void draw_thresholds(dither_key const& key, std::uint64_t chunk, std::uint32_t* thresholds)
{
  for (int thread = 0; thread < Size / 32; ++thread) {
    for (int part = 0; part < 2; ++part) {
      philox_block draw{};
      std::uint32_t mask = 0;
      if constexpr (Dither::rounds > 0) {
        std::uint64_t const block = chunk * (Size / 16) + static_cast<unsigned>(2 * thread + part);
        draw = philox4x32<Dither::rounds>(Dither::counter(block, key), key.seed);
        mask = Dither::mask(key);
      }
      for (int i = 0; i < 16; ++i) {
        int const r                                     = 2 * part + i / 8;
        thresholds[r * (Size / 4) + 8 * thread + i % 8] = threshold_of<Dither>(draw, mask, i);
      }
    }
  }
}

//! @brief Rows of a chunk to codes, whatever the quantizer. Returns the chunk's scale.
template <class Quantizer, class Dither, int Size>
[[nodiscard]] float encode_rows(instruction_set set,
                                dither_key const& key,
                                std::uint64_t chunk,
                                float const* rows,
                                std::uint32_t* to)
{
  if constexpr (block_quantizer<Quantizer>) {
    alignas(64) std::uint32_t thresholds[Size];
    draw_thresholds<Dither, Size>(key, chunk, thresholds);
    return encode_blocks<Quantizer, Size>(set, rows, thresholds, to);
  } else {
    return quantize_rows<Quantizer, Size>(set, rows, to);
  }
}

//! @brief Adds `scale` times what codes say to rows, whatever the quantizer.
template <class Quantizer, int Size>
void add_rows(instruction_set set, std::uint32_t const* from, float scale, float* rows)
{
  if constexpr (block_quantizer<Quantizer>) {
    add_blocks<Quantizer, Size>(set, from, scale, rows);
  } else {
    add_levels<Quantizer, Size>(set, from, scale, false, rows);
  }
}

//! @brief Rows from what codes say, times `scale`.
template <class Quantizer, int Size>
void set_rows(instruction_set set, std::uint32_t const* from, float scale, float* rows)
{
  if constexpr (block_quantizer<Quantizer>) {
    std::fill_n(rows, Size, 0.0f);
    add_blocks<Quantizer, Size>(set, from, scale, rows);
  } else {
    add_levels<Quantizer, Size>(set, from, scale, true, rows);
  }
}

}  // namespace tersum::inline v0::detail
