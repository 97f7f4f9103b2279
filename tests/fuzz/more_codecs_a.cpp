// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is tried besides codecs.cpp where TERSUM_FUZZ_ALL_CODECS is on: sums, and low-rank factors of other ranks.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(fp32, float);
TERSUM_TRY(fp16, half);
TERSUM_TRY(bf16, float);
TERSUM_TRY(rotated_sat2, float);
TERSUM_TRY(rotated_sat2_ef, float);
TERSUM_TRY(rotated_sat4, float);
TERSUM_TRY(rotated_sat4, half);
TERSUM_TRY(rotated_sat4_ef, bfloat16);
TERSUM_TRY(thc_sat4, float);
TERSUM_TRY(powersgd_r1, float);
TERSUM_TRY(powersgd_r16, float);
TERSUM_TRY(powersgd_r64, float);

}  // namespace tersum::tests
