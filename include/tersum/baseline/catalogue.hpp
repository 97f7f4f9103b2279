// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs by name: published formats and quantizers, in the exchanges of the library.
//!
//! They are here to be compared with: docs/results.md has their errors beside those of the presets.

#pragma once

#include <tersum/baseline/drawn_coordinates.hpp>
#include <tersum/baseline/float_levels.hpp>
#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/group_affine.hpp>
#include <tersum/baseline/integer_headroom.hpp>
#include <tersum/baseline/majority_lanes.hpp>
#include <tersum/baseline/natural_quantizer.hpp>
#include <tersum/baseline/normal_float.hpp>
#include <tersum/baseline/sampled_coordinates.hpp>
#include <tersum/baseline/shared_ranges.hpp>
#include <tersum/baseline/sign_quantizer.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

namespace tersum::inline v0::presets {

// clang-format off

//! @name Two shots of groups with scales of their own
//! @{
template <class Quantizer, int Chunk>
using two_shot_groups = two_shot_codec<fixed_chunks<Chunk>, no_rotation, Quantizer>;
inline constexpr two_shot_groups<mx_quantizer<e2m1_levels>, 512> mxfp4{};
inline constexpr two_shot_groups<mx_quantizer<e2m3_levels>, 512> mxfp6{};
inline constexpr two_shot_groups<mx_quantizer<e3m2_levels>, 512> mxfp6_e3m2{};
inline constexpr two_shot_groups<mx_quantizer<e4m3_levels>, 512> mxfp8{};
inline constexpr two_shot_groups<mx_quantizer<e5m2_levels>, 512> mxfp8_e5m2{};
inline constexpr two_shot_groups<group_absmax<8, 64, dynamic_levels, byte_scale, no_dither>, 1024> dynamic_8{};
inline constexpr two_shot_groups<nvfp4_quantizer, 256> nvfp4{};
inline constexpr two_shot_groups<group_absmax<4, 64, normal_levels, byte_scale, no_dither>, 1024> nf4{};
inline constexpr two_shot_groups<group_absmax<4, 128, linear_levels, bfloat16_scale, independent>, 2048> qsgd_4{};  //!< 7 levels of each sign, by the largest magnitude of a bucket of 128
inline constexpr two_shot_groups<group_absmax<4, 128, natural_levels, bfloat16_scale, independent>, 2048> natural_4{};  //!< the same with powers of two
inline constexpr two_shot_groups<group_minmax<8, 128, independent>, 2048> minmax_8{};  //!< From the least to the largest value of 128
inline constexpr two_shot_codec<fixed_chunks<2048>, no_rotation, group_two_means<128>, error_feedback> onebit_ef{};  //!< 1-bit SGD: the means of the signs of 128
//! @}

//! @name Two shots of rotated chunks, as `two_shot_4`, in levels of NF4
//! @{
inline constexpr two_shot_codec<fixed_chunks<1024>, partial_hadamard<1024>, normal_float<4>> nf4_rotated{};
//! @}

//! @name Sums of signs and of ternary codes, exact in lanes of 4 bits for up to 7 ranks
//! @{
using ternary_lanes = guard_lanes<4>;
inline constexpr codec<fixed_chunks<1024>, no_rotation, absmax_range<no_headroom>, stochastic_quantizer<2, independent>, ternary_lanes> terngrad{};  //!< TernGrad with a shared scale for each chunk (Wen et al., NIPS'17), without its clipping
inline constexpr codec<fixed_chunks<1024>, no_rotation, mean_magnitude_range, sign_quantizer, ternary_lanes, error_feedback> sign_mean_ef{};
//! @}

//! @name The majority vote of signs, times the ranks' mean magnitude, counted in the same lanes
//! @{
inline constexpr codec<fixed_chunks<1024>, no_rotation, mean_magnitude_range, sign_quantizer, majority_lanes<4>> sign_majority{};
//! @}

//! @name Global-QSGD: a range for all ranks, dithering, and sums in native bytes
//! By the largest norm of a chunk of any rank, at equal distances, for up to 18 ranks; by its largest magnitude, powers of two, for up to
//! 15. At equal distances by the largest magnitude it is `thc_wide4_unrotated`.
//! @{
inline constexpr codec<fixed_chunks<1024>, no_rotation, norm_range, stochastic_quantizer<4, independent>, widening_sum<4, 8>> global_qsgd_4{};
inline constexpr codec<fixed_chunks<1024>, no_rotation, absmax_range<no_headroom>, natural_quantizer<4>, widening_sum<5, 8>> global_natural_5{};
//! @}

//! @name QSGD by the norm of a whole tensor, the largest of any rank, in the same lanes
//! @{
inline constexpr codec<fixed_chunks<1024>, no_rotation, tensor_norm_range, stochastic_quantizer<4, independent>, widening_sum<4, 8>> tensor_qsgd_4{};
//! @}

//! @name Low rank without feedback: what is outside the subspaces is lost, and the power iteration goes on
//! @{
inline constexpr low_rank_codec<low_rank<4>, float, low_rank_schedule::paired, no_feedback> powersgd_r4_plain{};
//! @}

//! @name IntSGD: integers of 8 bits whose step follows the last mean, with the factor sqrt(2) of the paper
//! The lanes saturate; the published code clips each rank to 127 / n instead, so that bytes can be added natively.
//! @{
inline constexpr codec<fixed_chunks<1024>, no_rotation, global_range<integer_headroom>, stochastic_quantizer<8, independent>, saturating_sum<8>> intsgd_8{.range = {.clip = 179.605122f}};  //!< 127 sqrt(2)
//! @}

//! @name DGC's choice: TopK above a threshold that one coordinate in 100 tells
//! @{
inline constexpr sampled_coordinates_codec<> topk_sampled_b2{.chunker = {{.bits = 2}}};
//! @}

//! @name Random coordinates in half, drawn by the common seed: one of 8 neighbours, 2 bits per coordinate
//! @{
inline constexpr drawn_coordinates_codec<half> randomk_b2{.chunker = {.stride = 8, .scaled = true}};  //!< unbiased
inline constexpr drawn_coordinates_codec<half, error_feedback> randomk_b2_ef{.chunker = {.stride = 8}};
//! @}

//! @name THC's table in lanes of 16 bits, for up to 1560 ranks, or (2^15 - 1) / 21, and of 32 bits, for as many as a plan takes
//! 4 bits go up where a switch or a server looks up.
//! @{
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, rms_range<no_headroom>, lookup_quantizer<thc_table_42>, widening_sum<6, 16>> thc_lookup4_wide{.range = {.clip = 3.2971933f}};
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, rms_range<no_headroom>, lookup_quantizer<thc_table_42>, widening_sum<6, 32>> thc_lookup4_widest{.range = {.clip = 3.2971933f}};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
