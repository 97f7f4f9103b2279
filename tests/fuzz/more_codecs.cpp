// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is tried besides where TERSUM_FUZZ_CODECS is `all`: other elements, widths and ranks of the same kinds.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(fp32, float);
TERSUM_TRY(fp16, half);
TERSUM_TRY(rotated_sat2, float);
TERSUM_TRY(rotated_sat2_ef, float);
TERSUM_TRY(rotated_sat4, float);
TERSUM_TRY(rotated_sat4, half);
TERSUM_TRY(rotated_sat4_ef, bfloat16);
TERSUM_TRY(thc_sat4, float);
TERSUM_TRY(powersgd_r1, float);
TERSUM_TRY(powersgd_r16, float);
TERSUM_TRY(powersgd_r64, float);
TERSUM_TRY(topkc_b2_ef, half);
TERSUM_TRY(topkc_b8, float);
TERSUM_TRY(two_shot_4_ef, half);
TERSUM_TRY(gathered_4, float);
TERSUM_TRY(metric_3, float);
TERSUM_TRY(two_shot_4_ef, float);
TERSUM_TRY(rotated_sat8, float);
TERSUM_TRY(topkc_b05_ef, float);
TERSUM_TRY(allocated_sat_2, float);
TERSUM_TRY(allocated_sat_4, float);

}  // namespace tersum::tests
