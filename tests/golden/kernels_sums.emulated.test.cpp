// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: codecs whose codes or casts are summed.

#include "support/emulated_golden.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: sums")
{
  TERSUM_SUMMED_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  TERSUM_CHOSEN_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  // And some of gradients in bfloat16.
  TERSUM_HOLD_BFLOAT16(rotated_sat4_ef);
  TERSUM_HOLD_BFLOAT16(topkc_b2_ef);
}
