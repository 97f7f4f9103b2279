// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: codecs whose codes or casts are summed.

#include "support/emulated_golden.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: sums")
{
  TERSUM_HOLD(fp32);
  TERSUM_HOLD(fp16);
  TERSUM_HOLD(bf16);
  TERSUM_HOLD(rotated_sat2);
  TERSUM_HOLD(rotated_sat4);
  TERSUM_HOLD(rotated_sat8);
  TERSUM_HOLD(rotated_sat2_ef);
  TERSUM_HOLD(rotated_sat4_ef);
  TERSUM_HOLD(topkc_b05);
  TERSUM_HOLD(topkc_b2);
  TERSUM_HOLD(topkc_b8);
  TERSUM_HOLD(topkc_b05_ef);
  TERSUM_HOLD(topkc_b2_ef);
  TERSUM_HOLD(randomkc_b2);
  TERSUM_HOLD(topkc_sat4);
  TERSUM_HOLD(allocated_sat_2);
  TERSUM_HOLD(allocated_sat_4);
  TERSUM_HOLD(allocated_sat_4_ef);
  // And some of gradients in bfloat16.
  TERSUM_HOLD_BFLOAT16(rotated_sat4_ef);
  TERSUM_HOLD_BFLOAT16(topkc_b2_ef);
}
