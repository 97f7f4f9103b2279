// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Casts and rotated saturating codes, which transports sum.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of casts and rotated saturating codes are what they were")
{
  tests::golden_presets golden{"summed"};
  TERSUM_DESCRIBE(golden, fp32);
  TERSUM_DESCRIBE(golden, fp16);
  TERSUM_DESCRIBE(golden, bf16);
  TERSUM_DESCRIBE(golden, rotated_sat2);
  TERSUM_DESCRIBE(golden, rotated_sat4);
  TERSUM_DESCRIBE(golden, rotated_sat8);
  TERSUM_DESCRIBE(golden, rotated_sat2_ef);
  TERSUM_DESCRIBE_FULLY(golden, rotated_sat4_ef);
  golden.check();
}
