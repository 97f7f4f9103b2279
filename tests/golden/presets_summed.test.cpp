// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Casts and rotated saturating codes, which transports sum; and factors of matrices, every one of which travels, however little
//! that saves.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of casts and rotated saturating codes are what they were")
{
  tests::golden_presets golden{"summed"};
  TERSUM_SUMMED_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.check();
}

TEST_CASE("[golden] exchanges of low-rank factors are what they were")
{
  tests::golden_presets golden{"low_rank"};
  TERSUM_LOW_RANK_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.check();
}
