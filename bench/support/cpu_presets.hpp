// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Registers the parts of one preset's exchange on the CPU. Files that the build generates include it.

#pragma once

#include "support/cpu_bench.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum_bench {

//! @tparam Elements  Types of the gradient.
template <class... Elements, class Codec>
void add_preset(operation const& what, std::string_view preset, Codec const& codec)
{
  if (!has_part<Codec>(what.what) || (!what.only.empty() && what.only != preset)) { return; }
  auto const add_element = [&]<class Element>(Element) {
    for_each_cpu_setting(
      [&](auto const& exec, std::string_view executor, std::uint64_t n) {
        add(result_name(what.name, preset, element_name<Element>, executor, n, exec.threads),
            [=](benchmark::State& state) {
              run_part<Element, cpu_backend>(state, what.what, codec, exec, n);
            });
      },
      what.what == part::exchange ? exchange_sizes() : sizes());
  };
  (add_element(Elements{}), ...);
}

}  // namespace tersum_bench
