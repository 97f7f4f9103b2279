// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! All presets of the library by name: the one list that the programs of this folder share. With TERSUM_EXAMPLES_FEW one or two of each
//! kind, for builds that only test the programs.

#pragma once

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace examples {

//! @name Presets by name
//! `visit` is called with the name, a summary of one line and the codec. In groups, which programs compile apart.
//! @{
//! Codecs whose payload is summed.
template <class Visitor>
void for_each_summed_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit("fp32", "float32, summed natively", p::fp32);
  visit("fp16", "half precision, summed natively: the baseline", p::fp16);
  visit("bf16", "bfloat16, summed natively", p::bf16);
  visit("thc_wide4", "THC: full rotation, 4-bit codes in 8-bit lanes, exact sums", p::thc_wide4);
  visit("thc_sat4", "THC with saturation as published, 4 bits", p::thc_sat4);
  visit("rotated_sat4",
        "rotated, tracked head-room, stratified, 4-bit saturating sum",
        p::rotated_sat4);
  visit("rotated_sat8", "rotated_sat4 with 8 bits", p::rotated_sat8);
  visit("rotated_sat4_ef", "rotated_sat4, to nearest, with error feedback", p::rotated_sat4_ef);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("thc_wide4_partial",
        "thc_wide4 with rotated chunks and a range for each",
        p::thc_wide4_partial);
  visit("thc_wide4_unrotated", "thc_wide4_partial without rotation", p::thc_wide4_unrotated);
  visit("thc_lookup4", "THC with a table of 16 levels, exact sums in 8 bits", p::thc_lookup4);
  visit("thc_sat2", "THC with saturation as published, 2 bits", p::thc_sat2);
  visit("thc_sat8", "THC with saturation as published, 8 bits", p::thc_sat8);
  visit("rotated_sat2", "rotated_sat4 with 2 bits", p::rotated_sat2);
  visit("rotated_sat2_ef", "rotated_sat2, to nearest, with error feedback", p::rotated_sat2_ef);
#endif
}

//! Codecs that choose what travels.
template <class Visitor>
void for_each_choosing_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit("topk_b2", "TopK, gathered: each rank's largest coordinates, 2 bits", p::topk_b2);
  visit("topk_b2_ef", "topk_b2 with error feedback", p::topk_b2_ef);
  visit("topkc_b2", "TopKC: chunks of the largest norms as halves, 2 bits", p::topkc_b2);
  visit("topkc_b2_ef", "topkc_b2 with error feedback", p::topkc_b2_ef);
  visit("allocated_sat_4",
        "rotated, 0, 2, 4 or 8 bits for each chunk by its norm, saturating sums, 4 bits",
        p::allocated_sat_4);
  visit("allocated_sat_4_ef", "allocated_sat_4, to nearest, with feedback", p::allocated_sat_4_ef);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("topk_b05", "TopK with 0.5 bits", p::topk_b05);
  visit("topk_b8", "TopK with 8 bits", p::topk_b8);
  visit("topkc_b05", "TopKC with 0.5 bits", p::topkc_b05);
  visit("topkc_b8", "TopKC with 8 bits", p::topkc_b8);
  visit("topkc_b05_ef", "topkc_b05 with error feedback", p::topkc_b05_ef);
  visit("randomkc_b2", "random chunks as halves, 2 bits", p::randomkc_b2);
  visit("topkc_sat4", "TopKC in rotated 4-bit saturating codes, 2 bits", p::topkc_sat4);
  visit("allocated_sat_2", "allocated_sat_4 with 2 bits", p::allocated_sat_2);
#endif
}

//! Codecs that send factors of matrices.
template <class Visitor>
void for_each_low_rank_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit("powersgd_r4", "PowerSGD: factors of rank 4, two rounds, feedback", p::powersgd_r4);
  visit("acp_r4", "factors of rank 4 in one round, P and Q in turn: ACP-SGD", p::acp_r4);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("powersgd_r1", "PowerSGD with rank 1", p::powersgd_r1);
  visit("powersgd_r16", "PowerSGD with rank 16", p::powersgd_r16);
  visit("powersgd_r64", "PowerSGD with rank 64", p::powersgd_r64);
#endif
}

//! Codecs whose codes are decoded, added and encoded again by the owners of parts, or by every rank.
template <class Visitor>
void for_each_two_shot_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit("two_shot_4", "two shots: rotated, Lloyd-Max codes of 4 bits", p::two_shot_4);
  visit("two_shot_2", "two_shot_4 with 2 bits", p::two_shot_2);
  visit("two_shot_4_ef", "two_shot_4 with error feedback on ranks and owners", p::two_shot_4_ef);
  visit("two_shot_1_ef", "two_shot_4_ef with 1 bit", p::two_shot_1_ef);
  visit(
    "metric_2", "two shots of 2 bits in units of each coordinate, from decoded means", p::metric_2);
  visit("metric_3", "metric_2 with 3 bits", p::metric_3);
  visit("gathered_2", "codes of 2 bits of all ranks, which every rank adds", p::gathered_2);
  visit("gathered_4", "gathered_2 with 4 bits", p::gathered_4);
  visit("allocated_2", "two shots, 0 to 8 bits for each chunk by its norm, 2 bits", p::allocated_2);
  visit("allocated_4", "allocated_2 with 4 bits", p::allocated_4);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("two_shot_3", "two_shot_4 with 3 bits", p::two_shot_3);
  visit("two_shot_8", "two_shot_4 with 8 bits", p::two_shot_8);
  visit("two_shot_4_8", "two shots, 4 bits up and 8 down", p::two_shot_4_8);
  visit("blocks_4", "4 bits in blocks of 32 with scales of their own, as MX formats", p::blocks_4);
  visit("blocks_8", "blocks_4 with 8 bits", p::blocks_8);
#endif
}

//! Codecs of reduce-scatters, which leave the mean of a shard on each rank.
template <class Visitor>
void for_each_sharded_preset(Visitor visit)
{
  visit("sharded_4", "shards: codes of 4 bits, which owners add", tersum::presets::sharded_4);
}

//! Codecs of shards that a reduce-scatter adds.
template <class Visitor>
void for_each_summed_shards_preset(Visitor visit)
{
  visit("summed_shards_sat4",
        "rotated_sat4 of shards: a reduce-scatter adds",
        tersum::presets::summed_shards_sat4);
}

//! Codecs of values: `all_gather_values` takes them.
template <class Visitor>
void for_each_values_preset(Visitor visit)
{
  visit("values_4",
        "shards of the mean to all ranks, Lloyd-Max codes of 4 bits",
        tersum::presets::values_4);
}

//! All codecs of `all_reduce_mean` and of `reduce_scatter_mean` whose codes are not summed.
template <class Visitor>
void for_each_preset(Visitor visit)
{
  for_each_summed_preset(visit);
  for_each_choosing_preset(visit);
  for_each_low_rank_preset(visit);
  for_each_two_shot_preset(visit);
  for_each_sharded_preset(visit);
}
//! @}

}  // namespace examples
