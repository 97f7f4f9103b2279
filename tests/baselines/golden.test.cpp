// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden digests of what the library is compared with; see golden_digest.hpp.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of older codecs are what they were")
{
  tests::golden_presets golden{"older"};
  TERSUM_DESCRIBE(golden, mxfp4);
  TERSUM_DESCRIBE(golden, mxfp8);
  TERSUM_DESCRIBE(golden, nvfp4);
  TERSUM_DESCRIBE(golden, qsgd_4);
  TERSUM_DESCRIBE(golden, natural_4);
  TERSUM_DESCRIBE_FULLY(golden, onebit_ef);
  TERSUM_DESCRIBE(golden, terngrad);
  TERSUM_DESCRIBE_FULLY(golden, sign_majority);
  TERSUM_DESCRIBE(golden, randomk_b2);
  TERSUM_DESCRIBE_FULLY(golden, randomk_b2_ef);
  golden.check();
}

TEST_CASE("[golden] exchanges of TopK and of blocks are what they were")
{
  tests::golden_presets golden{"baseline"};
  TERSUM_DESCRIBE(golden, topk_b05);
  TERSUM_DESCRIBE(golden, topk_b2);
  TERSUM_DESCRIBE(golden, topk_b8);
  TERSUM_DESCRIBE(golden, topk_b2_ef);
  TERSUM_DESCRIBE(golden, blocks_4);
  TERSUM_DESCRIBE(golden, blocks_8);
  golden.check();
}

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
