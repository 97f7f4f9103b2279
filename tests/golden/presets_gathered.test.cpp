// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden digests of gathered codes; see golden_digest.hpp.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of gathered codes are what they were")
{
  tests::golden_presets golden{"gathered"};
  TERSUM_DESCRIBE(golden, gathered_2);
  TERSUM_DESCRIBE(golden, gathered_4);
  golden.describe_fully("gathered codes with feedback", presets::gathered<2, error_feedback>{});
  golden.check();
}
