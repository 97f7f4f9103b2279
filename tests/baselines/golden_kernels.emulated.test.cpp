// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: what the library is compared with.

#include "support/emulated_golden.hpp"

#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: baselines")
{
  TERSUM_HOLD(thc_wide4);
  TERSUM_HOLD(thc_wide4_partial);
  TERSUM_HOLD(thc_wide4_unrotated);
  TERSUM_HOLD(thc_lookup4);
  TERSUM_HOLD(thc_lookup4_wide);
  TERSUM_HOLD(thc_sat2);
  TERSUM_HOLD(thc_sat4);
  TERSUM_HOLD(thc_sat8);
  TERSUM_HOLD(topk_b05);
  TERSUM_HOLD(topk_b2);
  TERSUM_HOLD(topk_b8);
  TERSUM_HOLD(topk_b2_ef);
  TERSUM_HOLD(blocks_4);
  TERSUM_HOLD(blocks_8);
  TERSUM_HOLD(mxfp4);
  TERSUM_HOLD(mxfp8);
  TERSUM_HOLD(nvfp4);
  TERSUM_HOLD(qsgd_4);
  TERSUM_HOLD(natural_4);
  TERSUM_HOLD(onebit_ef);
  TERSUM_HOLD(terngrad);
  TERSUM_HOLD(sign_majority);
  TERSUM_HOLD(randomk_b2);
  TERSUM_HOLD(randomk_b2_ef);
}
