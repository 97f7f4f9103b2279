// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The presets that suites over transports exchange.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <support/preset_lists.hpp>

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
#if defined(TERSUM_FEW_CODECS)
  TERSUM_VISIT(fp16)
  TERSUM_VISIT(thc_wide4_partial)
  TERSUM_VISIT(rotated_sat4)
  TERSUM_VISIT(topk_b2)
  TERSUM_VISIT(allocated_sat_2)
#if defined(TERSUM_EVERY_KIND)
  TERSUM_VISIT(two_shot_4)
  TERSUM_VISIT(metric_2)
  TERSUM_VISIT(mxfp4)
  TERSUM_VISIT(powersgd_r4)
#endif
#else
  TERSUM_SUMMED_PRESETS(TERSUM_VISIT, TERSUM_VISIT)
  TERSUM_CHOSEN_PRESETS(TERSUM_VISIT, TERSUM_VISIT)
  TERSUM_LOW_RANK_PRESETS(TERSUM_VISIT, TERSUM_VISIT)
  TERSUM_TWO_SHOT_PRESETS(TERSUM_VISIT, TERSUM_VISIT)
  TERSUM_BASELINE_PRESETS(TERSUM_VISIT, TERSUM_VISIT)
  // Transports have no sum of 16 bits.
  TERSUM_VISIT(thc_wide4)
  TERSUM_VISIT(thc_wide4_partial)
  TERSUM_VISIT(thc_wide4_unrotated)
  TERSUM_VISIT(thc_lookup4)
  TERSUM_VISIT(thc_sat2)
  TERSUM_VISIT(thc_sat4)
  TERSUM_VISIT(thc_sat8)
  TERSUM_VISIT(mxfp4)
#endif
#undef TERSUM_VISIT
}

}  // namespace tersum::tests
