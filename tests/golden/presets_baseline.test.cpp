// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! TopK, hops that encode again, and blocks with scales: what the others are compared with.

#include "support/golden_digest.hpp"

#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of TopK, per hop and of blocks are what they were")
{
  tests::golden_presets golden{"tests/golden/presets_baseline.txt"};
  TERSUM_DESCRIBE(golden, topk_b05);
  TERSUM_DESCRIBE(golden, topk_b2);
  TERSUM_DESCRIBE(golden, topk_b8);
  TERSUM_DESCRIBE(golden, topk_b05_ef);
  TERSUM_DESCRIBE(golden, topk_b2_ef);
  TERSUM_DESCRIBE(golden, topk_b8_ef);
  TERSUM_DESCRIBE(golden, per_hop_2);
  TERSUM_DESCRIBE(golden, per_hop_3);
  TERSUM_DESCRIBE(golden, per_hop_4);
  TERSUM_DESCRIBE_FULLY(golden, per_hop_4_ef);
  TERSUM_DESCRIBE(golden, blocks_4);
  TERSUM_DESCRIBE(golden, blocks_8);
  TERSUM_DESCRIBE_FULLY(golden, dynamiq_4);
  TERSUM_DESCRIBE(golden, dynamiq_5);
  // The budget pays for two tiles and for three; it does not pay for one in a gradient of the usual length.
  golden.describe("dynamiq_hop_4", presets::dynamiq_hop_4, 529);
  golden.describe("dynamiq_hop_5", presets::dynamiq_hop_5, 529);
  golden.check();
}
