// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The chunk kernels of the CPU, compiled for each instruction set from one source, and the choice among them.

#pragma once

#include <tersum/block/chunk_order.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/block/detail/cpu/fused_in_double.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/quantize/detail/cell_lines.hpp>
#include <tersum/quantize/detail/codebook_cells.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/tuning.hpp>
#include <tersum/types.hpp>
#include <tersum/value.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tersum::inline v0::detail {

//! @brief Prefetches memory that lies `Distance` bytes beyond what is being computed with, because the processor's own
//! prefetchers stop where pages end. It is harmless if nothing lies there.
template <bool Write,
          std::uintptr_t Distance = Write ? tuning{}.cpu.write_ahead : tuning{}.cpu.read_ahead,
          class... More>
TERSUM_HOST_INLINE void fetch_beyond(void const* at, More const*... more)
{
  std::uintptr_t const beyond = reinterpret_cast<std::uintptr_t>(at) + Distance;
  __builtin_prefetch(reinterpret_cast<void const*>(beyond), Write ? 1 : 0, 3);
  (fetch_beyond<Write, Distance>(more), ...);
}

//! @brief Nothing beyond a chunk in a metric: what divides and multiplies also prefetches, because it waits for divisions and roots.
template <bool Write, std::uintptr_t Distance = 0, class Element, class Scale>
TERSUM_HOST_INLINE void fetch_beyond(divided<Element, Scale> const&)
{
}
template <bool Write, std::uintptr_t Distance = 0, class Element, class Scale, bool Keeps>
TERSUM_HOST_INLINE void fetch_beyond(multiplied<Element, Scale, Keeps> const&)
{
}

//! @brief Where a chunk comes from. A kernel that computes with a copy of the chunk prefetches what follows there.
template <class Element, class Residual = float>
struct chunk_source {
  Element const* gradient;
  Residual const* residual;  //!< Not used without feedback.

  template <bool Feedback>
  TERSUM_HOST_INLINE void fetch_beyond(int index) const
  {
    detail::fetch_beyond<false>(gradient + index);
    if (Feedback) { detail::fetch_beyond<false>(residual + index); }
  }
};

//! @brief The lowest bit of a `shifted_code`; below it lies the fraction, if there is one.
template <class Quantizer>
inline constexpr int code_shift = has_grid<Quantizer> ? Quantizer::fraction_bits : 0;

//! @brief The code of a value + max_level, from bit `code_shift` on. Above eight bits of it there may be others.
template <quantizer Quantizer, class Value>
[[nodiscard]] TERSUM_HOST_INLINE words_of<Value> shifted_code(Quantizer const& quantizer,
                                                              Value const& value,
                                                              float scale,
                                                              words_of<Value> const& random)
{
  constexpr int limit = Quantizer::max_level;
  if constexpr (has_grid<Quantizer>) {
    return Quantizer::grid::field(value, scale, random);
  } else {
    words_of<Value> code;
    if constexpr (requires { quantizer.encode(value, scale, random); }) {
      code = to_words(quantizer.encode(value, scale, random) + limit);
    } else {
      code = by_lanes(
        [&](float of, std::uint32_t byte) {
          return static_cast<std::uint32_t>(quantizer.encode(of, scale, byte) + limit);
        },
        value,
        random);
    }
    assert(all(code <= words_of<Value>(2u * limit)) &&
           "tersum: encode of a quantizer returned a code beyond its max_level");
    return code;
  }
}

//! @brief Fills a chunk that has not travelled: with zeros, or with NaNs.
template <class Element>
void fill_chunk(Element* to, std::uint32_t count, float value)
{
  constexpr std::uint32_t line = 64 / sizeof(Element);
  for (std::uint32_t i = 0; i < count; i += line) { fetch_beyond<true>(to + i); }
  std::fill_n(to, count, from_float<Element>(value));
}

#define TERSUM_SIMD_SOURCE <tersum/block/detail/cpu/vector_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

// Vectors of 16 floats take chunks of at least 256 coordinates, or of 512 with codebooks, whose lanes hold 32. Decoded floats that are not
// rotated are left to vectors of 8, which store them in their order, not in halves of a chunk by turns.

template <class Codec, class... Arguments>
void encode_chunk(instruction_set set, Codec const& codec, Arguments&&... arguments)
{
  TERSUM_DISPATCH(set, Codec::chunk_size >= 256, encode_chunk(codec, arguments...));
}

// clang-format off
TERSUM_KERNEL(fused_add)
TERSUM_KERNEL(add_residual)
TERSUM_KERNEL(convert_sendable)
TERSUM_KERNEL(keep_finite_residual)
TERSUM_KERNEL(convert_values)
TERSUM_KERNEL(add_values)
TERSUM_KERNEL(largest_of)
TERSUM_KERNEL(multiply_by_scales)
TERSUM_KERNEL(store_whole)

// Kernels with explicit template arguments; TERSUM_LIST declares them.
#define TERSUM_LIST(...) __VA_ARGS__
#define TERSUM_KERNEL_OF(name, wide, parameters, ...)                                              \
  template <parameters, class... Arguments>                                                        \
  auto name(instruction_set instructions, Arguments&&... arguments)                                \
  {                                                                                                \
    TERSUM_DISPATCH(instructions, wide, name<__VA_ARGS__>(arguments...));                          \
  }
TERSUM_KERNEL_OF(reduce_stretch, true, TERSUM_LIST(class Op), Op)
TERSUM_KERNEL_OF(square_norm, true, TERSUM_LIST(int Size), Size)
TERSUM_KERNEL_OF(decode_chunk, (Codec::chunk_size >= 256 && (Codec::rotates_chunks || !(std::is_same_v<std::decay_t<Arguments>, float*> || ...))), TERSUM_LIST(class Codec), Codec)
TERSUM_KERNEL_OF(rotate_to_rows, Size >= 512, TERSUM_LIST(int Size, bool... Rotate), Size, Rotate...)
TERSUM_KERNEL_OF(rotate_from_rows, Size >= 512, TERSUM_LIST(int Size, bool... Rotate), Size, Rotate...)
TERSUM_KERNEL_OF(quantize_rows, Size >= 512, TERSUM_LIST(class Quantizer, int Size), Quantizer, Size)
TERSUM_KERNEL_OF(add_levels, Size >= 512, TERSUM_LIST(class Quantizer, int Size), Quantizer, Size)
// clang-format on

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_KERNEL_OF
#undef TERSUM_LIST
#undef TERSUM_SIMD_SOURCE

}  // namespace tersum::inline v0::detail
