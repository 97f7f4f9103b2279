// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The exchanges of all presets, which the benchmarks of their parts share: most of what there is to compile.

#include "support/cpu_bench.hpp"

namespace tersum_bench {

void add_exchange_part(operation const& what)
{
  for_each_preset([&](std::string_view preset, auto const& codec) {
    if (!codec.agrees && !what.encodes && !what.decodes) { return; }  // no norms
    add_exchange_part<float>(what, what.name, preset, codec);
  });
  auto const& codec = tersum::presets::rotated_sat4;
  add_exchange_part<tersum::half>(what, what.name, "rotated_sat4", codec);
  add_exchange_part<tersum::bfloat16>(what, what.name, "rotated_sat4", codec);
}

}  // namespace tersum_bench
