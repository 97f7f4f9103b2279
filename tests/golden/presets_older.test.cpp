// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden digests of older codecs; see golden_digest.hpp.

#include "support/golden_digest.hpp"

#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of older codecs are what they were")
{
  tests::golden_presets golden{"older"};
  TERSUM_DESCRIBE(golden, mxfp4);
  TERSUM_DESCRIBE(golden, mxfp8);
  TERSUM_DESCRIBE(golden, nvfp4);
  TERSUM_DESCRIBE(golden, qsgd_4);
  TERSUM_DESCRIBE(golden, natural_4);
  TERSUM_DESCRIBE_FULLY(golden, onebit_ef);
  TERSUM_DESCRIBE(golden, terngrad);
  TERSUM_DESCRIBE_FULLY(golden, sign_majority);
  TERSUM_DESCRIBE(golden, randomk_b2);
  TERSUM_DESCRIBE_FULLY(golden, randomk_b2_ef);
  golden.check();
}
