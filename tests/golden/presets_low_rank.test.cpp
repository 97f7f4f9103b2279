// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Factors of matrices. The presets are changed in one point: every matrix travels, however little that saves.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <interop/presets.hpp>

using namespace tersum;

#define TERSUM_DESCRIBE_FACTORS(name) golden.describe(#name, tests::of_any_matrix(presets::name))

TEST_CASE("[golden] exchanges of low-rank factors are what they were")
{
  tests::golden_presets golden{"low_rank"};
  TERSUM_DESCRIBE_FACTORS(powersgd_r1);
  golden.describe_fully("powersgd_r4", tests::of_any_matrix(presets::powersgd_r4));
  TERSUM_DESCRIBE_FACTORS(powersgd_r16);
  TERSUM_DESCRIBE_FACTORS(powersgd_r64);
  TERSUM_DESCRIBE_FACTORS(acp_r4);
  golden.check();
}
