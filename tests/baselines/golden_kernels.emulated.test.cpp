// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: what the library is compared with.

#include "support/emulated_golden.hpp"

#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: baselines")
{
  TERSUM_OLDER_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  TERSUM_BASELINE_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
  TERSUM_THC_PRESETS(TERSUM_HOLD, TERSUM_HOLD);
}
