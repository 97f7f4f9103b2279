// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `group_absmax` on one CPU thread, compiled for each instruction set from one source, and the choice among them.

#pragma once

#include <tersum/baseline/detail/group_units.hpp>
#include <tersum/baseline/detail/mark_tree.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

namespace cpu_baseline {
#define TERSUM_SIMD_WIDTH 4
#define TERSUM_SIMD       [[maybe_unused]] TERSUM_HOST_INLINE
#define TERSUM_TARGET     [[maybe_unused]]
#include <tersum/baseline/detail/group_kernels.inl>
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_SIMD
#undef TERSUM_TARGET
}  // namespace cpu_baseline

#if defined(__x86_64__)
namespace cpu_avx2 {
#define TERSUM_SIMD_WIDTH 8
#define TERSUM_SIMD       [[maybe_unused]] TERSUM_HOST_INLINE __attribute__((target("avx2,fma,f16c")))
#define TERSUM_TARGET     [[maybe_unused]] __attribute__((target("avx2,fma,f16c")))
#include <tersum/baseline/detail/group_kernels.inl>
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_SIMD
#undef TERSUM_TARGET
}  // namespace cpu_avx2

namespace cpu_avx512 {
#define TERSUM_SIMD_WIDTH 16
#define TERSUM_SIMD                                                                                \
  [[maybe_unused]] TERSUM_HOST_INLINE                                                              \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define TERSUM_TARGET                                                                              \
  [[maybe_unused]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#include <tersum/baseline/detail/group_kernels.inl>
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_SIMD
#undef TERSUM_TARGET
}  // namespace cpu_avx512
#endif

#if defined(__x86_64__)
#define TERSUM_DISPATCH(instructions, ...)                                                         \
  do {                                                                                             \
    if ((instructions) == instruction_set::avx512) { return cpu_avx512::__VA_ARGS__; }             \
    if ((instructions) != instruction_set::baseline) { return cpu_avx2::__VA_ARGS__; }             \
    return cpu_baseline::__VA_ARGS__;                                                              \
  } while (false)
#else
#define TERSUM_DISPATCH(instructions, ...)                                                         \
  do {                                                                                             \
    static_cast<void>(instructions);                                                               \
    return cpu_baseline::__VA_ARGS__;                                                              \
  } while (false)
#endif

template <class Dither, int Size>
void draw_bytes(instruction_set set, dither_key const& key, std::uint64_t chunk, std::uint8_t* to)
{
  TERSUM_DISPATCH(set, draw_bytes<Dither, Size>(key, chunk, to));
}

template <class Quantizer, int Size>
[[nodiscard]] float encode_blocks(instruction_set set,
                                  float const* values,
                                  std::uint8_t const* random,
                                  std::uint32_t* to)
{
  TERSUM_DISPATCH(set, encode_blocks<Quantizer, Size>(values, random, to));
}

template <class Quantizer, int Size>
void add_blocks(instruction_set set, std::uint32_t const* from, float whole, float* values)
{
  TERSUM_DISPATCH(set, add_blocks<Quantizer, Size>(from, whole, values));
}

#undef TERSUM_DISPATCH

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
      alignas(64) std::uint8_t random[Size];
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
