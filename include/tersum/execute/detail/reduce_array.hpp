// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Element-wise reduction of arrays on the CPU.

#pragma once

#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief One operation on arrays of blocks or tiles of codes that are decoded, added and encoded again, a chunk at a time.
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
        // Both estimates are rounded before they are added, so that ranks with swapped operands get the same bits.
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

}  // namespace tersum::inline v0::detail
