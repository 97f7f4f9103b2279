// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of a two-shot codec to codes and back on one CPU thread, whatever the quantizer.

#pragma once

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Encodes the rows of a chunk by any codebook or group quantizer. Returns the chunk's scale.
template <class Quantizer, class Dither, int Size>
[[nodiscard]] float encode_rows(instruction_set set,
                                dither_key const& key,
                                std::uint64_t chunk,
                                float const* rows,
                                std::uint32_t* to)
{
  if constexpr (group_quantizer<Quantizer>) {
    if constexpr (Dither::rounds > 0) {
      alignas(64) std::uint8_t random[Size];
      draw_bytes<Dither, Size>(set, key, chunk, random);
      return encode_blocks<Quantizer, Size>(set, rows, random, to);
    } else {
      return encode_blocks<Quantizer, Size>(set, rows, nullptr, to);
    }
  } else {
    return quantize_rows<Quantizer, Size>(set, rows, to);
  }
}

//! @brief Adds `scale` times the levels of codes to the rows, or overwrites the rows if they are `fresh`.
template <class Quantizer, int Size>
void add_rows(instruction_set set, std::uint32_t const* from, float scale, float* rows, bool fresh)
{
  if constexpr (group_quantizer<Quantizer>) {
    if (fresh) { std::fill_n(rows, Size, 0.0f); }
    add_blocks<Quantizer, Size>(set, from, scale, rows);
  } else {
    add_levels<Quantizer, Size>(set, from, scale, rows, fresh);
  }
}

}  // namespace tersum::inline v0::detail
