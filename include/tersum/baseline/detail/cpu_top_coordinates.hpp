// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! TopK on the CPU: what the kernel bodies of block_top_coordinates.hpp do, to the same bits.

#pragma once

#include <tersum/baseline/detail/block_top_coordinates.hpp>
#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/detail/parallel_for.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The stages of TopK on `threads` threads.
template <class Codec, class Element>
class cpu_top_coordinates {
 public:
  cpu_top_coordinates(int threads, exchange_args<Codec, Element> const& args)
    : threads_(threads), args_(args)
  {
  }

  void encode() const
  {
    selection_args const& selection = args_.selection;
    chunk_selection{
      threads_, selection.rule, args_.chunks, selection.scratch->histogram[0], selection.places}
      .run([&](std::uint64_t i) { return magnitude_bits(value(i)); }, selection.scratch->header);
    coordinate_part const part = part_of(args_, args_.rank);
    for_each([&](std::uint64_t i) {
      std::uint32_t const place = selection.places[i];
      float const whole         = value(i);
      half const rounded        = to_half(whole);
      if (place != 0) {
        part.index[place >> place_shift] = static_cast<std::uint32_t>(i);
        part.value[place >> place_shift] = rounded;
      }
      if constexpr (Codec::feeds_back) {
        float const rest = place != 0 ? whole - to_float(rounded) : whole;
        if (is_finite(rest)) { args_.residual[i] = rest; }
      }
    });
  }

  void decode() const
  {
    float* const sums = reinterpret_cast<float*>(args_.selection.places);
    std::fill_n(sums, args_.chunks, 0.0f);
    for (int rank = 0; rank < args_.world; ++rank) {
      coordinate_part const part = part_of(args_, static_cast<std::uint64_t>(rank));
      for (std::uint32_t k = 0; k < args_.selection.rule.capacity; ++k) {
        std::uint32_t const i = part.index[k];
        if (i < args_.chunks) { sums[i] = sums[i] + to_float(part.value[k]); }
      }
    }
    float const share = 1.0f / static_cast<float>(args_.world);
    for_each([&](std::uint64_t i) {
      if (!is_finite(sums[i])) { raise_flag(args_); }
      args_.gradient[i] = from_float<Element>(sums[i] * share);
    });
  }

 private:
  [[nodiscard]] float value(std::uint64_t i) const
  {
    float const own = to_float(args_.gradient[i]);
    if constexpr (Codec::feeds_back) { return own + args_.residual[i]; }
    return own;
  }

  template <class Body>
  void for_each(Body const& body) const
  {
    constexpr std::uint64_t stretch = tuning{}.cpu.coordinate_stretch;
    parallel_for(threads_, (args_.chunks + stretch - 1) / stretch, [&](std::uint64_t part) {
      std::uint64_t const end = std::min(args_.chunks, (part + 1) * stretch);
      for (std::uint64_t i = part * stretch; i < end; ++i) { body(i); }
    });
  }

  int threads_;
  exchange_args<Codec, Element> const& args_;
};

}  // namespace tersum::inline v0::detail
