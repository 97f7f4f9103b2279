// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The presets of each golden file. A list says visit(name); of each, or full(name); of those that are digested fully with every compiler.

#pragma once

// clang-format off
#define TERSUM_SUMMED_PRESETS(visit, full) \
  visit(fp32); visit(fp16); visit(bf16); visit(rotated_sat2); visit(rotated_sat4); visit(rotated_sat8); visit(rotated_sat2_ef); \
  full(rotated_sat4_ef)
#define TERSUM_CHOSEN_PRESETS(visit, full) \
  visit(topkc_b05); visit(topkc_b2); visit(topkc_b8); visit(topkc_b05_ef); full(topkc_b2_ef); visit(randomkc_b2); \
  visit(topkc_sat4); visit(allocated_sat_2); visit(allocated_sat_4); full(allocated_sat_4_ef)
#define TERSUM_LOW_RANK_PRESETS(visit, full) \
  visit(powersgd_r1); full(powersgd_r4); visit(powersgd_r16); visit(powersgd_r64); visit(acp_r4)
#define TERSUM_TWO_SHOT_PRESETS(visit, full) \
  visit(two_shot_2); visit(two_shot_3); visit(two_shot_4); visit(two_shot_8); visit(two_shot_1_ef); visit(two_shot_4_ef); \
  visit(two_shot_4_8); visit(metric_2); full(metric_3); visit(allocated_2); visit(allocated_4)
#define TERSUM_GATHERED_PRESETS(visit, full) visit(gathered_2); visit(gathered_4)
#define TERSUM_SHARDS_PRESETS(visit, full) full(sharded_4); full(summed_shards_sat4); full(values_4)
#define TERSUM_OLDER_PRESETS(visit, full) \
  visit(mxfp4); visit(mxfp8); visit(nvfp4); visit(qsgd_4); visit(natural_4); full(onebit_ef); visit(terngrad); \
  full(sign_majority); visit(randomk_b2); full(randomk_b2_ef)
#define TERSUM_BASELINE_PRESETS(visit, full) \
  visit(topk_b05); visit(topk_b2); visit(topk_b8); visit(topk_b2_ef); visit(blocks_4); visit(blocks_8)
#define TERSUM_THC_PRESETS(visit, full) \
  visit(thc_wide4); visit(thc_wide4_partial); visit(thc_wide4_unrotated); full(thc_lookup4); visit(thc_lookup4_wide); \
  visit(thc_sat2); visit(thc_sat4); visit(thc_sat8)
// clang-format on
