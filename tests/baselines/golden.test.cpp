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
  TERSUM_OLDER_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.check();
}

TEST_CASE("[golden] exchanges of TopK and of blocks are what they were")
{
  tests::golden_presets golden{"baseline"};
  TERSUM_BASELINE_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.check();
}

TEST_CASE("[golden] exchanges of THC are what they were")
{
  tests::golden_presets golden{"thc"};
  TERSUM_THC_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.check();
}
