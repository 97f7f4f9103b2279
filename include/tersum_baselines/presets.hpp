// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Named codecs that those of <tersum/presets.hpp> are compared with.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/form/two_shot.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/types.hpp>
#include <tersum_baselines/drawn_coordinates.hpp>
#include <tersum_baselines/float_levels.hpp>
#include <tersum_baselines/full_hadamard.hpp>
#include <tersum_baselines/group_absmax.hpp>
#include <tersum_baselines/group_two_means.hpp>
#include <tersum_baselines/majority_lanes.hpp>
#include <tersum_baselines/mean_magnitude_range.hpp>
#include <tersum_baselines/sign_quantizer.hpp>
#include <tersum_baselines/top_coordinates.hpp>

namespace tersum::inline v0::presets {

// clang-format off

//! @name THC in native lanes: 4-bit codes, exact sums for up to 18 ranks
//! The baseline of Han et al. (HotNets'24), after Li et al., THC (NSDI'24), and the same with less rotation.
//! @{
inline constexpr codec<fixed_chunks<1024>, full_hadamard, summed_codes<global_range<no_headroom>, stochastic_quantizer<4, independent>, widening_sum<4, 8>>, in_wire> thc_wide4{};
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, summed_codes<absmax_range<no_headroom>, stochastic_quantizer<4, independent>, widening_sum<4, 8>>, in_wire> thc_wide4_partial{};
inline constexpr codec<fixed_chunks<1024>, no_rotation, summed_codes<absmax_range<no_headroom>, stochastic_quantizer<4, independent>, widening_sum<4, 8>>, in_wire> thc_wide4_unrotated{};
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, summed_codes<rms_range<no_headroom>, lookup_quantizer<thc_table_42>, widening_sum<6, 8>>, in_wire> thc_lookup4{.coder = {.range = {.clip = 3.2971933f}}};  //!< 16 levels of a table, for up to 6 ranks
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, summed_codes<rms_range<no_headroom>, lookup_quantizer<thc_table_42>, widening_sum<6, 16>>, in_wire> thc_lookup4_wide{.coder = {.range = {.clip = 3.2971933f}}};  //!< The same in lanes of 16 bits, for up to 1560 ranks, or (2^15 - 1) / 21
//! @}

//! @name THC with saturation, as Han et al. (HotNets'24), section 3.2.2 describe it
//! Partial rotation; each chunk's largest magnitude is mapped to the whole lane, which clips much of the sum. See
//! `rotated_sat4`.
//! @{
template <int Bits>
using thc_saturating = codec<fixed_chunks<1024>, partial_hadamard<1024>, summed_codes<absmax_range<no_headroom>, stochastic_quantizer<Bits, independent>, saturating_sum<Bits>>, in_wire>;
inline constexpr thc_saturating<2> thc_sat2{};
inline constexpr thc_saturating<4> thc_sat4{};
inline constexpr thc_saturating<8> thc_sat8{};
//! @}

//! @name TopK: each rank's own largest coordinates, gathered; what TopKC is compared with
//! @{
inline constexpr top_coordinates_codec<> topk_b05{.chunker = {.bits = 0.5f}};
inline constexpr top_coordinates_codec<> topk_b2{.chunker = {.bits = 2}};
inline constexpr top_coordinates_codec<> topk_b8{.chunker = {.bits = 8}};
inline constexpr top_coordinates_codec<error_feedback> topk_b2_ef{.chunker = {.bits = 2}};
//! @}

//! @name Random coordinates in half, drawn by the common seed: one of 8 neighbours, 2 bits per coordinate
//! @{
inline constexpr drawn_coordinates_codec<half> randomk_b2{.chunker = {.stride = 8, .scaled = true}};  //!< unbiased
inline constexpr drawn_coordinates_codec<half, error_feedback> randomk_b2_ef{.chunker = {.stride = 8}};
//! @}

//! @name Two shots of groups with scales of their own, without rotation
//! Presets whose names begin with "blocks" have 32 coordinates per block, linear levels, and scales that are powers of
//! two, as in MX formats; the number in the name is the bits of a code.
//! @{
template <class Quantizer, int Chunk>
using two_shot_groups = codec<fixed_chunks<Chunk>, no_rotation, scaled_codes<Quantizer>, tersum::two_shot>;
inline constexpr two_shot_groups<group_absmax<4, 32>, 512> blocks_4{};
inline constexpr two_shot_groups<group_absmax<8, 32>, 512> blocks_8{};
inline constexpr two_shot_groups<mx_quantizer<e2m1_levels>, 512> mxfp4{};
inline constexpr two_shot_groups<mx_quantizer<e4m3_levels>, 512> mxfp8{};
inline constexpr two_shot_groups<nvfp4_quantizer, 256> nvfp4{};
inline constexpr two_shot_groups<group_absmax<4, 128, linear_levels, bfloat16_scale, independent>, 2048> qsgd_4{};  //!< 7 levels of each sign, by the largest magnitude of a bucket of 128
inline constexpr two_shot_groups<group_absmax<4, 128, natural_levels, bfloat16_scale, independent>, 2048> natural_4{};  //!< the same with powers of two
inline constexpr codec<fixed_chunks<2048>, no_rotation, scaled_codes<group_two_means<128>>, tersum::two_shot, error_feedback> onebit_ef{};  //!< 1-bit SGD: the means of the signs of 128
//! @}

//! @name Sums of ternary codes, and the majority vote of signs, times the ranks' mean magnitude: exact in lanes of 4 bits for up to 7 ranks
//! @{
inline constexpr codec<fixed_chunks<1024>, no_rotation, summed_codes<absmax_range<no_headroom>, stochastic_quantizer<2, independent>, guard_lanes<4>>, in_wire> terngrad{};  //!< TernGrad with a shared scale for each chunk (Wen et al., NIPS'17), without its clipping
inline constexpr codec<fixed_chunks<1024>, no_rotation, summed_codes<mean_magnitude_range, sign_quantizer, majority_lanes<4>>, in_wire> sign_majority{};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
