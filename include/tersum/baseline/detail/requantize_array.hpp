// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Hops over whole arrays, on the CPU and as a launch. Executors find these functions by their arguments.

#pragma once

#include <tersum/baseline/detail/block_per_hop.hpp>
#include <tersum/baseline/detail/tile_map.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/reduce/detail/array_operands.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Decodes, adds and encodes again all chunks of arrays of blocks or tiles, on some threads of the host.
template <requantizing Op>
void requantize_array(int threads, instruction_set set, array_operands<Op> const& on)
{
  using element      = typename Op::element;
  element* const to  = on.to;
  element const* a   = on.a;
  element const* b   = on.b;
  constexpr int size = Op::chunk_size;
  parallel_for(threads, on.count, [&](std::uint64_t i) {
    tile_counts<Op> counts{{0, element::chunks}};
    if constexpr (Op::tiles) { counts = Op::counts_of(a[i].about); }
    std::uint32_t const chunks = counts.chunks();
    for (std::uint32_t index = 0; index < chunks; ++index) {
      part_place const place = counts.place(index);
      int const last         = element::scale_of(static_cast<int>(index));
      float const ours       = bits_float(a[i].word[last]);
      float const others     = bits_float(b[i].word[last]);
      alignas(64) float sum[extent(size)];
      dither_key key{};
      std::uint64_t number = 0;
      if constexpr (Op::tiles) {
        key    = Op::key_of(a[i].about, ours, others);
        number = Op::number_of(a[i].about, index);
      }
      at_level(hop_coding<Op>{}, place.level, [&](auto const& codec) {
        using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
        using codes     = chunk_codes<quantizer, size>;
        codes::add(set, a[i].word + place.word, ours, sum, true);
        // Both estimates are rounded before they are added, so that ranks with swapped operands get the same bits.
        codes::template add<true>(set, b[i].word + place.word, others, sum, false);
        float const scale = codes::template encode<typename Op::dither>(
          set, key, number, sum, to[i].word + place.word);
        to[i].word[last] = float_bits(scale);
      });
    }
    if constexpr (Op::tiles) {
      to[i].about = a[i].about;
      std::fill(to[i].word + counts.words() - chunks, to[i].word + element::room - chunks, 0u);
    }
  });
}

//! @brief The same for a list of arrays.
template <requantizing Op>
void requantize_array(int threads, instruction_set set, list_operands<Op> const& on)
{
  for (int i = 1; i < on.from.count; ++i) {
    auto const* const sum = i == 1 ? on.from.array[0] : on.to;
    requantize_array(threads, set, array_operands<Op>{on.to, sum, on.from.array[i], on.count});
  }
}

//! @brief Launches a kernel on `count` elements of arrays, of whose addresses `places` has the bits.
template <requantizing Op, class Executor, class Kernel>
[[nodiscard]] status requantize_with(Executor const& exec,
                                     Kernel const& kernel,
                                     std::uintptr_t places,
                                     std::size_t count)
{
  if (count > 0 && places % 16 != 0) {
    return {
      error_code::invalid_argument,
      "to, a or a payload is not aligned to 16 bytes, as operations that encode again need it"};
  }
  constexpr auto grid        = two_shot_grid<hop_coding<Op>>;
  std::uint64_t const chunks = count * std::uint64_t{Op::element::chunks};
  return exec.run(kernel, (chunks + grid.chunks_a_block - 1) / grid.chunks_a_block);
}

//! @brief The same as a launch, on an executor with `run`. Kernels load and store 16 bytes at once.
template <class Executor, requantizing Op>
[[nodiscard]] status requantize_array(Executor const& exec, array_operands<Op> const& on)
{
  auto const places = reinterpret_cast<std::uintptr_t>(on.to) |
                      reinterpret_cast<std::uintptr_t>(on.a) |
                      reinterpret_cast<std::uintptr_t>(on.b);
  return requantize_with<Op>(exec, requantize_elements_kernel<Op>{on}, places, on.count);
}

//! @brief The same as a launch for a list of arrays.
template <class Executor, requantizing Op>
[[nodiscard]] status requantize_array(Executor const& exec, list_operands<Op> const& on)
{
  auto places = reinterpret_cast<std::uintptr_t>(on.to);
  for (int i = 0; i < on.from.count; ++i) {
    places |= reinterpret_cast<std::uintptr_t>(on.from.array[i]);
  }
  return requantize_with<Op>(exec, requantize_list_kernel<Op>{on}, places, on.count);
}

}  // namespace tersum::inline v0::detail
