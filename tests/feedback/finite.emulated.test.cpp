// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals that kernel bodies keep stay finite.

#include "support/check_finite.hpp"
#include "support/emulated_executor.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[feedback] kernels keep what is finite")
{
  using emulated = tests::emulated_executor;
  using sums     = presets::tracked_saturating<nearest_quantizer<4>, error_feedback>;
  tests::check_finite<emulated>(sums{.coder = {.range = {.clip = 1.9f}}}, 1);
  tests::check_finite<emulated>(presets::two_shot<1, error_feedback>{}, 1);
  tests::check_finite<emulated>(low_rank_codec<low_rank<1>>{}, 1);
}
