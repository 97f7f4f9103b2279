// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Registers the parts of one preset's exchange on a CUDA device. Files that the build generates include it.

#pragma once

#include "support/cuda_bench.cuh"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <type_traits>

namespace tersum_bench {

//! @tparam Elements  Types of the gradient.
template <class... Elements, class Codec>
void add_preset(operation const& what, std::string_view preset, Codec const& codec)
{
  if (!has_part<Codec>(what.what) || (!what.only.empty() && what.only != preset)) { return; }
  auto const add_element = [&]<class Element>(Element) {
    for (std::uint64_t const n : what.what < part::pair             ? sizes()
                                 : what.what <= part::pair_replayed ? exchange_sizes()
                                                                    : bucket_sizes()) {
      if (what.what > part::exchange && !takes(codec, n, form_of(what.what))) { continue; }
      add(what.name, preset, element_name<Element>, n, [=](benchmark::State& state) {
        run_part<Element, cuda_backend>(state, what.what, codec, {}, n);
      });
    }
  };
  (add_element(Elements{}), ...);
  // Where the numbers of coordinates take more than 31 bits.
  if constexpr ((std::is_same_v<Elements, tersum::bfloat16> || ...)) {
    constexpr std::uint64_t n = (std::uint64_t{1} << 31) + (std::uint64_t{1} << 20);
    if (what.what == part::pair && !small()) {
      add(what.name, preset, element_name<tersum::bfloat16>, n, [=](benchmark::State& state) {
        run_part<tersum::bfloat16, cuda_backend>(state, what.what, codec, {}, n);
      });
    }
  }
}

}  // namespace tersum_bench
