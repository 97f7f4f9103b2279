// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `group_two_means` on one CPU thread, compiled for each instruction set from one source.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/part_in_rows.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum_baselines/detail/cpu_group_absmax.hpp>

#include <cstdint>

namespace tersum::inline v0 {

template <int Block>
struct group_two_means;

}  // namespace tersum::inline v0

namespace tersum::inline v0::detail {

#define TERSUM_SIMD_SOURCE <tersum_baselines/detail/two_means_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

template <class Quantizer, int Size>
[[nodiscard]] float encode_two_means(instruction_set set, float const* values, std::uint32_t* to)
{
  TERSUM_DISPATCH(set, true, encode_two_means<Quantizer, Size>(values, to));
}

template <class Quantizer, int Size, bool Fresh>
void add_two_means(instruction_set set, std::uint32_t const* from, float whole, float* values)
{
  TERSUM_DISPATCH(set, true, add_two_means<Quantizer, Size, Fresh>(from, whole, values));
}

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_SIMD_SOURCE

//! @brief Values lie as in the gradient.
template <int Block, int Size>
struct chunk_codes<group_two_means<Block>, Size> {
  using quantizer = group_two_means<Block>;

  template <class Dither>
  [[nodiscard]] static float encode(
    instruction_set set, dither_key const&, std::uint64_t, float const* values, std::uint32_t* to)
  {
    return encode_two_means<quantizer, Size>(set, values, to);
  }

  static void add(
    instruction_set set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    fresh ? add_two_means<quantizer, Size, true>(set, from, scale, values)
          : add_two_means<quantizer, Size, false>(set, from, scale, values);
  }
};

}  // namespace tersum::inline v0::detail
