// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of a two-shot codec to codes and back on one CPU thread, whatever the quantizer.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Chunks of `Size` values under a quantizer. It is specialized here for codebooks, and where other quantizers are.
//!
//! `encode` writes the codes of values, which lie as rotation leaves them, and returns the chunk's scale. `add` adds `scale`
//! times the decoded codes to values, or overwrites the values if they are `fresh`. Products are added with one rounding, or, if
//! `Rounded`, with one of their own first.
template <class Quantizer, int Size>
struct chunk_codes {
  static_assert(
    codebook<Quantizer>,
    "tersum: include tersum/baseline/group_absmax.hpp, which has the kernels of quantizers of groups");
};

template <codebook Quantizer, int Size>
struct chunk_codes<Quantizer, Size> {
  template <class Dither>
  [[nodiscard]] static float encode(
    instruction_set set, dither_key const&, std::uint64_t, float const* rows, std::uint32_t* to)
  {
    return quantize_rows<Quantizer, Size>(set, rows, to);
  }

  template <bool Rounded = false>
  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* rows, bool fresh)
  {
    add_levels<Quantizer, Size, Rounded>(set, from, scale, rows, fresh);
  }
};

}  // namespace tersum::inline v0::detail
