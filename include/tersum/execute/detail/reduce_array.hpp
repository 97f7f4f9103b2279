// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of arrays on the CPU.

#pragma once

#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/exchange/detail/cpu/cpu_coded_chunks.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/reduce/detail/add_lanes.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief One stretch: a plain loop that each instruction set's compiler vectorizes.
template <class Op>
void reduce_stretch_baseline(typename Op::element* to,
                             typename Op::element const* a,
                             typename Op::element const* b,
                             std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}

#if defined(__x86_64__)
template <class Op>
__attribute__((target("avx2,fma,f16c"))) void reduce_stretch_avx2(typename Op::element* to,
                                                                  typename Op::element const* a,
                                                                  typename Op::element const* b,
                                                                  std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}

template <class Op>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) void
reduce_stretch_avx512(typename Op::element* to,
                      typename Op::element const* a,
                      typename Op::element const* b,
                      std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}
#endif

//! @brief The same for blocks or tiles of codes that are decoded, added and encoded again, a chunk at a time.
template <requantizing Op>
void requantize_array(int threads,
                      instruction_set set,
                      typename Op::element* to,
                      typename Op::element const* a,
                      typename Op::element const* b,
                      std::size_t count)
{
  using element      = typename Op::element;
  constexpr int size = Op::chunk_size;
  parallel_for(threads, count, [&](std::uint64_t i) {
    tile_counts<Op> counts{{0, element::chunks}};
    if constexpr (Op::tiles) { counts = Op::counts_of(a[i].about); }
    std::uint32_t const chunks = counts.chunks();
    for (std::uint32_t index = 0; index < chunks; ++index) {
      part_place const place = counts.place(index);
      int const last         = element::scale_of(static_cast<int>(index));
      float const ours       = bits_float(a[i].word[last]);
      float const others     = bits_float(b[i].word[last]);
      alignas(64) float sum[size], other[size];
      dither_key key{};
      std::uint64_t number = 0;
      if constexpr (Op::tiles) {
        key    = Op::key_of(a[i].about, ours, others);
        number = Op::number_of(a[i].about, index);
      }
      at_level(codec_of_op<Op>{}, place.level, [&](auto const& codec) {
        using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
        add_rows<quantizer, size>(set, a[i].word + place.word, ours, sum, true);
        add_rows<quantizer, size>(set, b[i].word + place.word, others, other, true);
        // Both estimates are rounded before they are added: ranks that swap the operands get the same bits.
        fused_add(set, 1.0f, sum, other, size, sum);
        float const scale = encode_rows<quantizer, typename Op::dither, size>(
          set, key, number, sum, to[i].word + place.word);
        to[i].word[last] = float_bits(scale);
      });
    }
    if constexpr (Op::tiles) {
      to[i].about = a[i].about;
      std::fill(to[i].word + counts.place(chunks).word, to[i].word + element::room - chunks, 0u);
    }
  });
}

//! @brief to[i] = op(a[i], b[i]); `to` may be `a` or `b`.
template <class Op>
void reduce_range([[maybe_unused]] instruction_set set,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  std::size_t count)
{
  if constexpr (std::is_same_v<Op, native_sum<half>> || std::is_same_v<Op, native_sum<bfloat16>>) {
    return add_values(set, a, b, to, count);
  }
#if defined(__x86_64__)
  if constexpr (vector_lanes<Op> != 0) {
    if (set == instruction_set::avx512) {
      return add_lanes_avx512<vector_lanes<Op>>(to, a, b, count);
    }
    if (set == instruction_set::avx2) { return add_lanes_avx2<vector_lanes<Op>>(to, a, b, count); }
  }
  if (set == instruction_set::avx512) { return reduce_stretch_avx512<Op>(to, a, b, count); }
  if (set == instruction_set::avx2) { return reduce_stretch_avx2<Op>(to, a, b, count); }
#endif
  reduce_stretch_baseline<Op>(to, a, b, count);
}

//! @brief to[i] = op(a[i], b[i]) for first <= i < last of arrays of `count` elements; `to` may be `a` or `b`.
template <class Op>
void reduce_share(instruction_set set,
                  Op const& op,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  [[maybe_unused]] std::size_t count,
                  std::size_t first,
                  std::size_t last)
{
  auto const reduce_part = [&]<class Part>(Part, std::size_t begin, std::size_t end) {
    begin = std::max(begin, first);
    end   = std::min(end, last);
    if (begin < end) { reduce_range<Part>(set, to + begin, a + begin, b + begin, end - begin); }
  };
  if constexpr (has_combine_at<Op>) {
    op.for_each_part(count, reduce_part);
  } else {
    reduce_part(op, 0, count);
  }
}

//! @brief body(first, last) for shares of an array, one on each thread, of whole lines of the cache and at least so many bytes.
template <class Element, class Body>
void each_share_of_array(int threads, std::size_t count, std::size_t least_bytes, Body const& body)
{
  std::size_t const least = maximum<std::size_t>(least_bytes / sizeof(Element), 1);
  each_share(threads, count, least, 64 / sizeof(Element), body);
}

//! @brief to[i] = op(a[i], b[i]) on some threads, one share of the array for each; `to` may be `a` or `b`.
template <class Op>
void reduce_array(int threads,
                  instruction_set set,
                  Op const& op,
                  typename Op::element* to,
                  typename Op::element const* a,
                  typename Op::element const* b,
                  std::size_t count,
                  std::size_t least_bytes = tuning{}.cpu.least_reduced)
{
  using element = typename Op::element;
  if constexpr (requantizing<Op>) {
    requantize_array<Op>(threads, set, to, a, b, count);
  } else {
    each_share_of_array<element>(
      threads, count, least_bytes, [&](std::size_t first, std::size_t last) {
        reduce_share(set, op, to, a, b, count, first, last);
      });
  }
}

//! @brief to[i] = op(.. op(op(from[0][i], from[1][i]), from[2][i]) ..) of `arrays` arrays, at least two. A share goes through
//! all of them a stretch at a time, which the cache holds in between. `to` may be from[0].
template <class Op>
void reduce_arrays(int threads,
                   instruction_set set,
                   Op const& op,
                   typename Op::element* to,
                   typename Op::element const* const* from,
                   std::size_t arrays,
                   std::size_t count)
{
  using element                 = typename Op::element;
  constexpr std::size_t stretch = 16384 / sizeof(element);
  each_share_of_array<element>(
    threads, count, tuning{}.cpu.least_reduced, [&](std::size_t first, std::size_t last) {
      for (std::size_t begin = first; begin < last; begin += stretch) {
        std::size_t const end = std::min(begin + stretch, last);
        for (std::size_t i = 1; i < arrays; ++i) {
          reduce_share(set, op, to, i == 1 ? from[0] : to, from[i], count, begin, end);
        }
      }
    });
}

}  // namespace tersum::inline v0::detail
