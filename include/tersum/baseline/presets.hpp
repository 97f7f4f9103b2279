// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Named codecs that the presets of <tersum/presets.hpp> are compared with.

#pragma once

#include <tersum/baseline/full_hadamard.hpp>
#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/top_coordinates.hpp>
#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/lloyd_max.hpp>
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

//! @name The same codes, decoded, added and encoded again by every hop of the transport's all-reduce
//! The error grows with the world: for comparison, and for transports that have nothing but an all-reduce.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using per_hop = per_hop_codec<fixed_chunks<1024>, partial_hadamard<1024>, lloyd_max<Bits>, Feedback>;
inline constexpr per_hop<2> per_hop_2{};
inline constexpr per_hop<3> per_hop_3{};
inline constexpr per_hop<4> per_hop_4{};
inline constexpr per_hop<4, error_feedback> per_hop_4_ef{};
//! @}

//! @name Two shots of unrotated blocks with scales of their own: formats to compare with
//! Presets whose names begin with "blocks" have 32 coordinates per block, linear levels, and scales that are powers of
//! two, as in MX formats; the number in the name is the bits of a code. Those that begin with "dynamiq" follow DynamiQ
//! (SIGCOMM'26): 2, 4 or 8 bits for every 256 coordinates, geometric levels, and a byte for the scale of 16
//! coordinates. Unlike DynamiQ they use this library's allocation and do not subtract means. The number in the name is
//! the bits per coordinate, norms and scales included.
//! @{
template <int Bits>
using two_shot_blocks = two_shot_codec<fixed_chunks<512>, no_rotation, group_absmax<Bits, 32>>;
inline constexpr two_shot_blocks<4> blocks_4{};
inline constexpr two_shot_blocks<8> blocks_8{};

using dynamiq_quantizer = group_absmax<8, 16, geometric_levels<23, 10>, byte_scale>;
using dynamiq = two_shot_codec<allocated_chunks<256, 2, 4, 8>, no_rotation, dynamiq_quantizer>;
inline constexpr dynamiq dynamiq_4{.chunker = {.bits = 4}};
inline constexpr dynamiq dynamiq_5{.chunker = {.bits = 5}};
//! @}

//! @name The same per hop, as DynamiQ adds them
//! @{
using dynamiq_hop = per_hop_codec<allocated_chunks<256, 2, 4, 8>, no_rotation, dynamiq_quantizer>;
inline constexpr dynamiq_hop dynamiq_hop_4{.chunker = {.bits = 4}};
inline constexpr dynamiq_hop dynamiq_hop_5{.chunker = {.bits = 5}};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
