// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is tried besides codecs_a.cpp and codecs_b.cpp where TERSUM_FUZZ_ALL_CODECS is on: gathered codes, shards, and the
//! other presets that keep something from step to step.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(gathered_2, half);
TERSUM_TRY(gathered_4, float);
TERSUM_TRY(gathered_2_ef, float);
TERSUM_TRY(metric_2, float);
TERSUM_TRY(metric_3, float);
TERSUM_TRY(metric_4, half);
TERSUM_TRY(sharded_1, float);
TERSUM_TRY(sharded_4, bfloat16);
TERSUM_TRY(sharded_2_ef, float);
TERSUM_TRY(sharded_4_ef, float);
TERSUM_TRY(values_8, bfloat16);
TERSUM_TRY(differences_2, float);
TERSUM_TRY(differences_4, float);
TERSUM_TRY(two_shot_4_ef, float);
TERSUM_TRY(rotated_sat8, float);
TERSUM_TRY(topkc_b05_ef, float);
TERSUM_TRY(topkc_b8_ef, float);
TERSUM_TRY(topkc_sat4, float);
TERSUM_TRY(allocated_sat_2, float);
TERSUM_TRY(allocated_sat_3, float);
TERSUM_TRY(allocated_sat_4, float);
TERSUM_TRY(allocated_sat_3_ef, float);
TERSUM_TRY(allocated_sat_4_ef, float);

}  // namespace tersum::tests
