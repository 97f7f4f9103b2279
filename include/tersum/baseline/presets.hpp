// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Named codecs that the presets of <tersum/presets.hpp> are compared with.

#pragma once

#include <tersum/baseline/full_hadamard.hpp>
#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/top_coordinates.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

namespace tersum::inline v0::presets {

// clang-format off

//! @name THC in 8-bit native lanes: 4-bit codes, exact sums for up to 18 ranks
//! The baseline of Han et al. (HotNets'24), after Li et al., THC (NSDI'24), and the same with less rotation.
//! @{
inline constexpr codec<fixed_chunks<1024>, full_hadamard, global_range<no_headroom>, stochastic_quantizer<4, independent>, widening_sum<4, 8>> thc_wide4{};
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, absmax_range<no_headroom>, stochastic_quantizer<4, independent>, widening_sum<4, 8>> thc_wide4_partial{};
inline constexpr codec<fixed_chunks<1024>, no_rotation, absmax_range<no_headroom>, stochastic_quantizer<4, independent>, widening_sum<4, 8>> thc_wide4_unrotated{};
inline constexpr codec<fixed_chunks<1024>, partial_hadamard<1024>, rms_range<no_headroom>, lookup_quantizer<thc_table_42>, widening_sum<6, 8>> thc_lookup4{.range = {.clip = 3.2971933f}};  //!< 16 levels of a table, for up to 6 ranks
//! @}

//! @name THC with saturation, as Han et al. (HotNets'24), section 3.2.2 describe it
//! Partial rotation; each chunk's largest magnitude is mapped to the whole lane, which clips much of the sum. See
//! `rotated_sat4`.
//! @{
template <int Bits>
using thc_saturating = codec<fixed_chunks<1024>, partial_hadamard<1024>, absmax_range<no_headroom>, stochastic_quantizer<Bits, independent>, saturating_sum<Bits>>;
inline constexpr thc_saturating<2> thc_sat2{};
inline constexpr thc_saturating<4> thc_sat4{};
inline constexpr thc_saturating<8> thc_sat8{};
//! @}

//! @name TopK: each rank's own largest coordinates, gathered; what TopKC is compared with
//! @{
inline constexpr top_coordinates_codec<> topk_b05{.chunker = {.bits = 0.5f}};
inline constexpr top_coordinates_codec<> topk_b2{.chunker = {.bits = 2}};
inline constexpr top_coordinates_codec<> topk_b8{.chunker = {.bits = 8}};
inline constexpr top_coordinates_codec<error_feedback> topk_b05_ef{.chunker = {.bits = 0.5f}};
inline constexpr top_coordinates_codec<error_feedback> topk_b2_ef{.chunker = {.bits = 2}};
inline constexpr top_coordinates_codec<error_feedback> topk_b8_ef{.chunker = {.bits = 8}};
//! @}

//! @name Two shots of unrotated blocks with scales of their own: formats to compare with
//! Presets whose names begin with "blocks" have 32 coordinates per block, linear levels, and scales that are powers of
//! two, as in MX formats; the number in the name is the bits of a code.
//! @{
template <int Bits>
using two_shot_blocks = two_shot_codec<fixed_chunks<512>, no_rotation, group_absmax<Bits, 32>>;
inline constexpr two_shot_blocks<4> blocks_4{};
inline constexpr two_shot_blocks<8> blocks_8{};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
