// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: two shots, gathers, shards and values.

#include "support/emulated_golden.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: parts")
{
  TERSUM_HOLD(two_shot_2);
  TERSUM_HOLD(two_shot_3);
  TERSUM_HOLD(two_shot_4);
  TERSUM_HOLD(two_shot_8);
  TERSUM_HOLD(two_shot_1_ef);
  TERSUM_HOLD(two_shot_4_ef);
  TERSUM_HOLD(two_shot_4_8);
  TERSUM_HOLD(metric_2);
  TERSUM_HOLD(metric_3);
  TERSUM_HOLD(allocated_2);
  TERSUM_HOLD(allocated_4);
  TERSUM_HOLD(gathered_2);
  TERSUM_HOLD(gathered_4);
  TERSUM_HOLD(sharded_4);
  TERSUM_HOLD(summed_shards_sat4);
  TERSUM_HOLD(values_4);
  // And some of gradients in bfloat16.
  TERSUM_HOLD_BFLOAT16(two_shot_4);
  TERSUM_HOLD_BFLOAT16(metric_3);
}
