// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient to codes once the ranks have agreed (`encode`), and with the local norms before it (`local`). Beside presets it measures
//! `rotated_sat4` with a quantizer of a user's own.

#include "../examples/your_own/dead_zone_quantizer.hpp"
#include "support/cpu_presets.hpp"

namespace {

using namespace tersum;

using dead_zone_sat4 =
  codec<fixed_chunks<1024>,
        partial_hadamard<1024>,
        summed_codes<rms_range<tracked_correlation>, dead_zone_quantizer<4>, saturating_sum<4>>,
        in_wire>;

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  add_presets({"encode", part::encode});
  add_preset<float>({"encode", part::encode}, "dead_zone_sat4", dead_zone_sat4{});
  add_presets({"local", part::local});
  return name_compiler();
}();

}  // namespace
