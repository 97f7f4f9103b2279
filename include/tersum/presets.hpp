// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Named codecs: values to make plans from. Those that differ in a number only are made of the templates: docs/tuning.md.

#pragma once

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/random_chunks.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/form/gather.hpp>
#include <tersum/form/publish.hpp>
#include <tersum/form/shard.hpp>
#include <tersum/form/two_shot.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0::presets {

// clang-format off

//! @name Native sums: the baselines
//! @{
inline constexpr codec<fixed_chunks<1024>, no_rotation, cast<float>, in_wire>    fp32{};
inline constexpr codec<fixed_chunks<1024>, no_rotation, cast<half>, in_wire>     fp16{};  //!< What every comparison is made against.
inline constexpr codec<fixed_chunks<1024>, no_rotation, cast<bfloat16>, in_wire> bf16{};
//! @}

//! @name Rotated saturating codes with tracked head-room: the default in-wire codecs
//! Rounding is stratified and stochastic, unbiased except where the sum saturates. With feedback (`_ef`) it is to
//! nearest, which has less error and a bias that feedback removes.
//! @{
template <quantizer Quantizer, feedback Feedback = no_feedback>
using tracked_saturating = codec<fixed_chunks<1024>, partial_hadamard<1024>, summed_codes<rms_range<tracked_correlation>, Quantizer, saturating_sum<Quantizer::bits>>, in_wire, Feedback>;
inline constexpr tracked_saturating<stochastic_quantizer<2>> rotated_sat2{.coder = {.range = {.clip = 1.1f}}};
inline constexpr tracked_saturating<stochastic_quantizer<4>> rotated_sat4{.coder = {.range = {.clip = 1.9f}}};
inline constexpr tracked_saturating<stochastic_quantizer<8>> rotated_sat8{.coder = {.range = {.clip = 3.6f}}};
inline constexpr tracked_saturating<nearest_quantizer<2>, error_feedback> rotated_sat2_ef{.coder = {.range = {.clip = 1.1f}}};
inline constexpr tracked_saturating<nearest_quantizer<4>, error_feedback> rotated_sat4_ef{.coder = {.range = {.clip = 1.9f}}};
//! @}

//! @name TopKC: the chunks with the largest summed norms, in half; bits per coordinate in the name
//! Han et al. (HotNets'24), section 3.1 and table 5, with its chunk sizes. Norms travel in bfloat16.
//! @{
template <int Size, feedback Feedback = no_feedback>
using top_halves = codec<top_chunks<Size>, no_rotation, cast<half>, in_wire, Feedback>;
inline constexpr top_halves<128> topkc_b05{.chunker = {.bits = 0.5f}};
inline constexpr top_halves<64>  topkc_b2{.chunker = {.bits = 2}};
inline constexpr top_halves<64>  topkc_b8{.chunker = {.bits = 8}};
inline constexpr top_halves<128, error_feedback> topkc_b05_ef{.chunker = {.bits = 0.5f}};
inline constexpr top_halves<64, error_feedback>  topkc_b2_ef{.chunker = {.bits = 2}};
//! @}

//! @name Random chunks in half: what TopKC has to beat
//! @{
inline constexpr codec<random_chunks<64>, no_rotation, cast<half>, in_wire> randomkc_b2{.chunker = {.bits = 2}};
//! @}

//! @name TopKC with rotated saturating codes of 4 bits in place of halves, 2 bits per coordinate
//! @{
template <quantizer Quantizer, feedback Feedback = no_feedback>
using top_saturating = codec<top_chunks<256>, partial_hadamard<256>, summed_codes<rms_range<tracked_correlation, bfloat16>, Quantizer, saturating_sum<Quantizer::bits>>, in_wire, Feedback>;
inline constexpr top_saturating<stochastic_quantizer<4>> topkc_sat4{.chunker = {.bits = 2}, .coder = {.range = {.clip = 0}}};
//! @}

//! @name A width of 0, 2, 4 or 8 bits for every chunk, summed in saturating lanes; bits per coordinate in the name
//! @{
template <quantizer Quantizer, feedback Feedback = no_feedback>
using allocated_saturating = codec<allocated_chunks<256, 2, 4, 8>, partial_hadamard<256>, summed_codes<rms_range<tracked_correlation, bfloat16>, Quantizer, saturating_sum<8>>, in_wire, Feedback>;
inline constexpr allocated_saturating<stochastic_quantizer<8>> allocated_sat_2{.chunker = {.bits = 2}};
inline constexpr allocated_saturating<stochastic_quantizer<8>> allocated_sat_4{.chunker = {.bits = 4}};
inline constexpr allocated_saturating<nearest_quantizer<8>, error_feedback> allocated_sat_4_ef{.chunker = {.bits = 4}};
//! @}

//! @name Low-rank factors of matrices, with feedback: PowerSGD, and its form of one round (ACP-SGD)
//! Both use Cholesky QR instead of Gram-Schmidt. They need `layout::tensors`, without which there is nothing to compress: `plan::check` says so.
//! @{
template <int Rank>
using power_iteration = low_rank_codec<low_rank<Rank>>;
inline constexpr power_iteration<1>  powersgd_r1{};
inline constexpr power_iteration<4>  powersgd_r4{};
inline constexpr power_iteration<16> powersgd_r16{};
inline constexpr power_iteration<64> powersgd_r64{};

template <int Rank>
using alternating_iteration = low_rank_codec<low_rank<Rank>, cast<float>, low_rank_schedule::alternating>;
inline constexpr alternating_iteration<4>  acp_r4{};
//! @}

//! @name Two shots: rotated chunks in Lloyd-Max codes, decoded and added by the owners of parts, encoded once more
//! The error does not grow with the world. Each of the two encodings is unbiased; see docs/contracts.md for both together.
//! Bits of a code in the name, a scale for every 1024.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using two_shot = codec<fixed_chunks<1024>, partial_hadamard<1024>, scaled_codes<lloyd_max<Bits>>, tersum::two_shot, Feedback>;
inline constexpr two_shot<2> two_shot_2{};
inline constexpr two_shot<3> two_shot_3{};
inline constexpr two_shot<4> two_shot_4{};
inline constexpr two_shot<8> two_shot_8{};
inline constexpr two_shot<1, error_feedback> two_shot_1_ef{};
inline constexpr two_shot<4, error_feedback> two_shot_4_ef{};
//! @}

//! @name Two shots with codes of one width to the owners of parts and of another for the mean: bits up, then bits down
//! `two_shot_4_8` has the widths of THC.
//! @{
template <int Up, int Down, feedback Feedback = no_feedback>
using two_way_shot = codec<fixed_chunks<1024>, partial_hadamard<1024>, scaled_codes<lloyd_max<Up>>, two_shot_to<scaled_codes<lloyd_max<Down>>>, Feedback>;
inline constexpr two_way_shot<4, 8> two_shot_4_8{};
//! @}

//! @name Two shots in the units of each coordinate, for adaptive optimizers such as AdamW
//! The library keeps the scales, from the means that it decoded.
//! @{
template <int Bits>
using metric_two_shot = codec<fixed_chunks<1024>, partial_hadamard<1024>, scaled_codes<lloyd_max<Bits>>, tersum::two_shot, no_feedback, kept_diagonal>;
inline constexpr metric_two_shot<2> metric_2{};
inline constexpr metric_two_shot<3> metric_3{};
//! @}

//! @name Two shots with a width for every chunk, from none to 8 bits; bits per coordinate, norms and scales included, in the name
//! Feedback keeps what a rank's own codes lost. Owners keep nothing, because chunks change owners from step to step.
//! @{
template <feedback Feedback = no_feedback>
using allocated_two_shot = codec<allocated_chunks<512, 1, 2, 3, 4, 5, 6, 8>, partial_hadamard<512>, scaled_codes<lloyd_max<8>>, tersum::two_shot, Feedback>;
inline constexpr allocated_two_shot<> allocated_2{.chunker = {.bits = 2}};
inline constexpr allocated_two_shot<> allocated_4{.chunker = {.bits = 4}};
//! @}

//! @name All ranks' codes, gathered: one round and one encoding, for 2 or 3 ranks or where latency rules
//! The codes are those of `two_shot_*`. A rank receives n - 1 payloads, where two shots move 2 (n - 1) / n.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using gathered = codec<fixed_chunks<1024>, partial_hadamard<1024>, scaled_codes<lloyd_max<Bits>>, gather, Feedback>;
inline constexpr gathered<2> gathered_2{};
inline constexpr gathered<4> gathered_4{};
//! @}

//! @name Shards: rotated chunks in Lloyd-Max codes, decoded and added by the ranks whose shards they lie in
//! The codes are those of `two_shot_*`; the mean is not encoded again. Bits of a code in the name, a scale for every 1024.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using sharded = codec<fixed_chunks<1024>, partial_hadamard<1024>, scaled_codes<lloyd_max<Bits>>, shard, Feedback>;
inline constexpr sharded<4> sharded_4{};
//! @}

//! @name Shards whose codes a reduce-scatter adds
//! The parts of `rotated_sat4`, in saturating lanes.
//! @{
template <quantizer Quantizer, feedback Feedback = no_feedback>
using saturating_shards = codec<fixed_chunks<1024>, partial_hadamard<1024>, summed_codes<rms_range<tracked_correlation>, Quantizer, saturating_sum<Quantizer::bits>>, shard, Feedback>;
inline constexpr saturating_shards<stochastic_quantizer<4>> summed_shards_sat4{.coder = {.range = {.clip = 1.9f}}};
//! @}

//! @name Values: each rank's shard in codes, for all ranks
//! The codes are those of `two_shot_*`.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using values = codec<fixed_chunks<1024>, partial_hadamard<1024>, scaled_codes<lloyd_max<Bits>>, publish, Feedback>;
inline constexpr values<4> values_4{};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
