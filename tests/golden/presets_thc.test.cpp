// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! THC, in lanes that are summed exactly or saturate.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of THC are what they were")
{
  tests::golden_presets golden{"thc"};
  TERSUM_DESCRIBE(golden, thc_wide4);
  TERSUM_DESCRIBE(golden, thc_wide4_partial);
  TERSUM_DESCRIBE(golden, thc_wide4_unrotated);
  TERSUM_DESCRIBE_FULLY(golden, thc_lookup4);
  TERSUM_DESCRIBE(golden, thc_lookup4_wide);
  TERSUM_DESCRIBE(golden, thc_sat2);
  TERSUM_DESCRIBE(golden, thc_sat4);
  TERSUM_DESCRIBE(golden, thc_sat8);
  golden.check();
}
