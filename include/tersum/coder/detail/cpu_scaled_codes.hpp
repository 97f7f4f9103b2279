// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Values of a chunk to codes with a scale and back, in vectors of a host thread.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/random/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Chunks of `Size` values under a quantizer. It is specialized here for codebooks, and where other quantizers are.
//!
//! `encode` writes the codes of values, which lie as rotation leaves them, and returns the chunk's scale. `add` adds `scale`
//! times the decoded codes to values, or overwrites the values if they are `fresh`. Products are added with one rounding.
template <class Quantizer, int Size>
struct chunk_codes {
  static_assert(codebook<Quantizer>,
                "tersum: include the header of the quantizer, which has its kernels");

  template <class Dither>
  [[nodiscard]] static float encode(
    instruction_set set, dither_key const&, std::uint64_t, float const* rows, std::uint32_t* to)
  {
    return quantize_rows<Quantizer, Size>(set, rows, to);
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* rows, bool fresh)
  {
    add_levels<Quantizer, Size>(set, from, scale, rows, fresh);
  }
};

//! @brief Elements in the order of the gradient.
template <conversion Quantizer, int Size>
struct chunk_codes<Quantizer, Size> {
  using element = typename Quantizer::element;

  template <class Dither>
  [[nodiscard]] static float encode(
    instruction_set set, dither_key const&, std::uint64_t, float const* values, std::uint32_t* to)
  {
    float const scale = scale_of_elements<element>(largest_of(set, values, Size));
    if (scale > 0.0f) {
      float const inverse = inverse_of_scale(scale);
      static_cast<void>(
        convert_values(set, values, reinterpret_cast<element*>(to), inverse, std::size_t{Size}));
    } else {
      std::fill_n(to, code_words<Quantizer>(Size), 0u);
    }
    return scale;
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    if (fresh) { std::fill_n(values, Size, 0.0f); }
    fused_add(set, scale, reinterpret_cast<element const*>(from), values, Size, values);
  }
};

}  // namespace tersum::inline v0::detail
