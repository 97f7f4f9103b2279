// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The presets that suites over transports exchange.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

//! Low-rank codecs with which every matrix of a bucket travels, however little that saves.
template <class Codec>
[[nodiscard]] Codec of_any_matrix(Codec codec)
{
  if constexpr (is_low_rank<Codec>) { codec.low_rank.least_saving = 0; }
  return codec;
}

//! @brief Calls visit(name, codec) for the presets; of `Groups` groups for one.
//!
//! With TERSUM_FEW_CODECS for a few of them, and with TERSUM_EVERY_KIND besides for one of each kind of codec.
template <int Groups = 1, int Group = 0, class Visit>
void for_each_preset(Visit const& visit)
{
#define TERSUM_VISIT(name)                                                                         \
  if constexpr (__COUNTER__ % Groups == Group) { visit(#name, of_any_matrix(presets::name)); }
  TERSUM_VISIT(fp16)
  TERSUM_VISIT(thc_wide4_partial)
  TERSUM_VISIT(rotated_sat4)
  TERSUM_VISIT(topk_b2)
  TERSUM_VISIT(allocated_sat_2)
#if !defined(TERSUM_FEW_CODECS) || defined(TERSUM_EVERY_KIND)
  TERSUM_VISIT(two_shot_4)
  TERSUM_VISIT(metric_2)
  TERSUM_VISIT(mxfp4)
  TERSUM_VISIT(powersgd_r4)
#endif
#if !defined(TERSUM_FEW_CODECS)
  TERSUM_VISIT(fp32)
  TERSUM_VISIT(bf16)
  TERSUM_VISIT(thc_wide4)
  TERSUM_VISIT(thc_wide4_unrotated)
  TERSUM_VISIT(thc_sat2)
  TERSUM_VISIT(thc_sat4)
  TERSUM_VISIT(thc_sat8)
  TERSUM_VISIT(thc_lookup4)
  TERSUM_VISIT(rotated_sat2)
  TERSUM_VISIT(rotated_sat8)
  TERSUM_VISIT(rotated_sat2_ef)
  TERSUM_VISIT(rotated_sat4_ef)
  TERSUM_VISIT(topkc_b05)
  TERSUM_VISIT(topkc_b2)
  TERSUM_VISIT(topkc_b8)
  TERSUM_VISIT(topkc_b05_ef)
  TERSUM_VISIT(topkc_b2_ef)
  TERSUM_VISIT(topk_b05)
  TERSUM_VISIT(topk_b8)
  TERSUM_VISIT(topk_b2_ef)
  TERSUM_VISIT(randomkc_b2)
  TERSUM_VISIT(topkc_sat4)
  TERSUM_VISIT(allocated_sat_4)
  TERSUM_VISIT(allocated_sat_4_ef)
  TERSUM_VISIT(two_shot_2)
  TERSUM_VISIT(two_shot_3)
  TERSUM_VISIT(two_shot_8)
  TERSUM_VISIT(two_shot_1_ef)
  TERSUM_VISIT(two_shot_4_ef)
  TERSUM_VISIT(allocated_2)
  TERSUM_VISIT(allocated_4)
  TERSUM_VISIT(blocks_4)
  TERSUM_VISIT(blocks_8)
  TERSUM_VISIT(powersgd_r1)
  TERSUM_VISIT(powersgd_r16)
  TERSUM_VISIT(powersgd_r64)
  TERSUM_VISIT(acp_r4)
#endif
#undef TERSUM_VISIT
}

}  // namespace tersum::tests
