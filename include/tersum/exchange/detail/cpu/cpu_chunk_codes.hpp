// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of a two-shot codec to codes and back on one CPU thread, whatever the quantizer.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/chunk/chunk_order.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cmath>
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
};

//! @brief Whether a codebook has, beside its plain form or in its place, one that vectors compute.
template <class Quantizer>
inline constexpr bool has_vectors = table_codebook<Quantizer> || has_lines<Quantizer>;

//! @brief The plain form: one value after the other, in the order of the wire.
template <codebook Quantizer, int Size>
requires(!has_vectors<Quantizer>) struct chunk_codes<Quantizer, Size> {
  static constexpr int bits = Quantizer::bits;

  template <class Dither>
  [[nodiscard]] static float encode(
    instruction_set set, dither_key const&, std::uint64_t, float const* rows, std::uint32_t* to)
  {
    float x[extent(Size)];
    rows_to_array<Size>(set, rows, x);
    for (int w = 0; w < Size / 32 * bits; ++w) { to[w] = 0; }
    auto const at = [&](int p) { return x[chunk_order<Size>::coordinate(p)]; };
    float const energy =
      sum_of_positions<Size>([&](int p, float sum) { return ::fmaf(at(p), at(p), sum); });
    if (!(energy >= 0x1p-100f && is_finite(energy))) {
      return energy < 0x1p-100f ? 0.0f : bits_float(0x7fffffffu);
    }
    float const root    = ::sqrtf(static_cast<float>(Size) / energy);
    float const product = sum_of_positions<Size>([&](int p, float sum) {
      std::uint32_t const code = Quantizer{}.encode(host_group::multiply(at(p), root));
      write_code<bits>(to, p, code);
      return ::fmaf(at(p), Quantizer{}.decode(code), sum);
    });
    return energy / product;
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* rows, bool fresh)
  {
    float x[extent(Size)] = {};
    if (!fresh) { rows_to_array<Size>(set, rows, x); }
    for (int p = 0; p < Size; ++p) {
      float& value = x[chunk_order<Size>::coordinate(p)];
      value        = ::fmaf(level_of_code<Quantizer>(read_code<bits>(from, p)), scale, value);
    }
    array_to_rows<Size>(set, x, rows);
  }
};

//! @brief Tables, which vectors look up, or lines.
template <codebook Quantizer, int Size>
requires(has_vectors<Quantizer>) struct chunk_codes<Quantizer, Size> {
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
      static_cast<void>(convert_values(set, values, reinterpret_cast<element*>(to), inverse, Size));
    } else {
      std::fill_n(to, code_words<Quantizer>(Size), 0u);
    }
    return scale;
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    if (fresh) { std::fill_n(values, Size, 0.0f); }
    add_scaled(set, reinterpret_cast<element const*>(from), scale, values, Size);
  }
};

}  // namespace tersum::inline v0::detail
