// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies give the bytes that the golden files hold of the CPU: low-rank factors. Their products need only be near those of
//! the CPU; of this gradient they are equal.

#include "support/emulated_golden.hpp"

#include <tersum/presets.hpp>

#include <interop/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] kernel bodies give the bytes that the CPU gave: factors")
{
  TERSUM_HOLD_FACTORS(powersgd_r1);
  TERSUM_HOLD_FACTORS(powersgd_r4);
  TERSUM_HOLD_FACTORS(powersgd_r16);
  TERSUM_HOLD_FACTORS(powersgd_r64);
  TERSUM_HOLD_FACTORS(acp_r4);
}
