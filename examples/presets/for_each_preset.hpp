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
  visit("fp32", "float32, uncompressed: to compare with", p::fp32);
  visit("fp16", "halves, summed natively: the baseline", p::fp16);
  visit("bf16", "bfloat16, summed natively: where gradients leave the range of halves", p::bf16);
  visit("thc_wide4",
        "exact sums of 4-bit codes in lanes of 8 bits: where the wire sums bytes alone",
        p::thc_wide4);
  visit("thc_sat4", "THC with saturation as published, 4 bits: to compare with", p::thc_sat4);
  visit("rotated_sat4",
        "4 bits where only the wire can add: rotated, tracked head-room, saturating sums",
        p::rotated_sat4);
  visit("rotated_sat8",
        "rotated_sat4 with 8 bits: as good as fp16 in half of its bits",
        p::rotated_sat8);
  visit("rotated_sat4_ef",
        "rotated_sat4, to nearest, with error feedback: for SGD",
        p::rotated_sat4_ef);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("thc_wide4_partial",
        "thc_wide4 with rotated chunks and a range for each: faster, and as good",
        p::thc_wide4_partial);
  visit("thc_wide4_unrotated",
        "thc_wide4_partial without rotation: to compare with",
        p::thc_wide4_unrotated);
  visit("thc_lookup4",
        "THC with a table of 16 levels, exact sums in 8 bits: to compare with",
        p::thc_lookup4);
  visit("thc_sat2", "THC with saturation as published, 2 bits: to compare with", p::thc_sat2);
  visit("thc_sat8", "THC with saturation as published, 8 bits: to compare with", p::thc_sat8);
  visit("rotated_sat2",
        "rotated_sat4 with 2 bits: two_shot_2 and metric_2 train better",
        p::rotated_sat2);
  visit("rotated_sat2_ef",
        "rotated_sat2, to nearest, with error feedback: for SGD",
        p::rotated_sat2_ef);
#endif
}

//! Codecs that choose what travels.
template <class Visitor>
void for_each_choosing_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit("topk_b2",
        "TopK, each rank's largest coordinates, gathered, 2 bits: to compare with",
        p::topk_b2);
  visit(
    "topk_b2_ef", "topk_b2 with error feedback: few ranks, very sparse gradients", p::topk_b2_ef);
  visit("topkc_b2",
        "TopKC, chunks of the largest norms as halves, 2 bits: to compare with",
        p::topkc_b2);
  visit("topkc_b2_ef",
        "topkc_b2 with error feedback: gradients of embeddings, whose rows are mostly zeros",
        p::topkc_b2_ef);
  visit(
    "allocated_sat_4",
    "4 bits where only the wire can add and energy lies in places: 0 to 8 bits by a chunk's norm",
    p::allocated_sat_4);
  visit("allocated_sat_4_ef",
        "allocated_sat_4, to nearest, with feedback: for SGD",
        p::allocated_sat_4_ef);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("topk_b05", "TopK with 0.5 bits: to compare with", p::topk_b05);
  visit("topk_b8", "TopK with 8 bits: to compare with", p::topk_b8);
  visit("topkc_b05", "TopKC with 0.5 bits: to compare with", p::topkc_b05);
  visit("topkc_b8", "TopKC with 8 bits: to compare with", p::topkc_b8);
  visit("topkc_b05_ef",
        "topkc_b05 with error feedback: for gradients that are nearly all zeros",
        p::topkc_b05_ef);
  visit("randomkc_b2", "random chunks as halves, 2 bits: to compare with", p::randomkc_b2);
  visit("topkc_sat4", "TopKC in codes of rotated_sat4, 2 bits: to compare with", p::topkc_sat4);
  visit("allocated_sat_2",
        "allocated_sat_4 with 2 bits: for SGD, as chunks that are dropped starve under Adam",
        p::allocated_sat_2);
#endif
}

//! Codecs that send factors of matrices.
template <class Visitor>
void for_each_low_rank_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit(
    "powersgd_r4",
    "PowerSGD of rank 4, with feedback: below 1 bit, for SGD on large matrices and slow networks",
    p::powersgd_r4);
  visit("acp_r4",
        "ACP-SGD, one factor of rank 4 in each step: as powersgd_r4, in one round",
        p::acp_r4);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("powersgd_r1", "PowerSGD with rank 1: the fewest bits", p::powersgd_r1);
  visit("powersgd_r16", "PowerSGD with rank 16: for larger matrices", p::powersgd_r16);
  visit("powersgd_r64", "PowerSGD with rank 64: for the largest matrices", p::powersgd_r64);
#endif
}

//! Codecs whose codes are decoded, added and encoded again by the owners of parts, or by every rank.
template <class Visitor>
void for_each_two_shot_preset(Visitor visit)
{
  namespace p = tersum::presets;
  visit("two_shot_4",
        "the one to begin with: 4 bits that train like fp16, also under Adam",
        p::two_shot_4);
  visit("two_shot_2", "2 bits for SGD; under Adam metric_2 trains better", p::two_shot_2);
  visit("two_shot_4_ef",
        "two_shot_4 with error feedback on ranks and owners: for SGD",
        p::two_shot_4_ef);
  visit("two_shot_1_ef",
        "1 bit with feedback: for SGD, and for momenta of MomentumAdamW",
        p::two_shot_1_ef);
  visit("metric_2",
        "2 bits for Adam, in units of each coordinate: what it costs depends on task and rate",
        p::metric_2);
  visit("metric_3",
        "3 bits for Adam, in units of each coordinate: next to two_shot_4 in loss",
        p::metric_3);
  visit("gathered_2",
        "2 bits among two or three ranks, who encode once and add all codes",
        p::gathered_2);
  visit("gathered_4", "gathered_2 with 4 bits", p::gathered_4);
  visit(
    "allocated_2",
    "the least error of the mean at 2 bits, 0 to 8 for each chunk by its norm; starves coordinates under Adam",
    p::allocated_2);
  visit("allocated_4",
        "the least error of the mean at 4 bits, 0 to 8 for each chunk by its norm",
        p::allocated_4);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("two_shot_3", "two_shot_4 with 3 bits; under Adam metric_3 trains better", p::two_shot_3);
  visit("two_shot_8",
        "two_shot_4 with 8 bits: next to no error, in half of the bits of fp16",
        p::two_shot_8);
  visit("two_shot_4_8",
        "two_shot_4 with 8 bits on the way back: where what ranks receive costs less",
        p::two_shot_4_8);
  visit("blocks_4",
        "4 bits in blocks of 32 with scales of their own, as MX formats: no rotation",
        p::blocks_4);
  visit("blocks_8", "blocks_4 with 8 bits", p::blocks_8);
#endif
}

//! Codecs of reduce-scatters, which leave the mean of a shard on each rank.
template <class Visitor>
void for_each_sharded_preset(Visitor visit)
{
  visit("sharded_4",
        "for FSDP and ZeRO: the mean of a shard after one encoding of 4 bits",
        tersum::presets::sharded_4);
}

//! Codecs of shards that a reduce-scatter adds.
template <class Visitor>
void for_each_summed_shards_preset(Visitor visit)
{
  visit("summed_shards_sat4",
        "for FSDP and ZeRO where only the wire can add: rotated_sat4 of shards",
        tersum::presets::summed_shards_sat4);
}

//! Codecs of values: `all_gather_values` takes them.
template <class Visitor>
void for_each_values_preset(Visitor visit)
{
  visit("values_4",
        "for weights that are gathered: shards of a mean to all ranks, 4 bits",
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
