// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks that are chosen, and widths that are, summed in the wire.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of chosen chunks are what they were")
{
  tests::golden_presets golden{"tests/golden/presets_chosen.txt"};
  TERSUM_DESCRIBE(golden, topkc_b05);
  TERSUM_DESCRIBE(golden, topkc_b2);
  TERSUM_DESCRIBE(golden, topkc_b8);
  TERSUM_DESCRIBE(golden, topkc_b05_ef);
  TERSUM_DESCRIBE_FULLY(golden, topkc_b2_ef);
  TERSUM_DESCRIBE(golden, topkc_b8_ef);
  TERSUM_DESCRIBE(golden, randomkc_b2);
  TERSUM_DESCRIBE(golden, randomkc_b2_ef);
  TERSUM_DESCRIBE(golden, topkc_sat4);
  TERSUM_DESCRIBE(golden, topkc_sat4_ef);
  TERSUM_DESCRIBE(golden, allocated_sat_2);
  TERSUM_DESCRIBE(golden, allocated_sat_3);
  TERSUM_DESCRIBE(golden, allocated_sat_4);
  TERSUM_DESCRIBE(golden, allocated_sat_8);
  TERSUM_DESCRIBE(golden, allocated_sat_2_ef);
  TERSUM_DESCRIBE(golden, allocated_sat_3_ef);
  TERSUM_DESCRIBE_FULLY(golden, allocated_sat_4_ef);
  golden.check();
}
