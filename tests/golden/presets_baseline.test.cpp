// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! TopK, and blocks with scales: what the others are compared with.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

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
