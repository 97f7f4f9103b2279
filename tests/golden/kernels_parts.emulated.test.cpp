// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: two shots, gathers, shards and values; and low-rank
//! factors, of which products need only be near those of the CPU: of this gradient they are equal.

#include "support/emulated_golden.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: parts")
{
  TERSUM_LOW_RANK_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  TERSUM_TWO_SHOT_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  TERSUM_GATHERED_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  TERSUM_SHARDS_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  // And some of gradients in bfloat16.
  TERSUM_HOLD_BFLOAT16(two_shot_4);
  TERSUM_HOLD_BFLOAT16(metric_3);
}
