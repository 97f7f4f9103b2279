// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs by name: published formats and quantizers, in the exchanges of the library.
//!
//! They are here to be compared with: docs/results.md has their errors beside those of the presets.

#pragma once

#include <tersum/baseline/float_levels.hpp>
#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/normal_float.hpp>
#include <tersum/baseline/shared_ranges.hpp>
#include <tersum/baseline/sign_quantizer.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/reduce/guard_lanes.hpp>
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
inline constexpr two_shot_groups<mx_quantizer<e4m3_levels>, 512> mxfp8{};
inline constexpr two_shot_groups<nvfp4_quantizer, 256> nvfp4{};
inline constexpr two_shot_groups<group_absmax<4, 64, normal_levels, byte_scale, no_dither>, 1024> nf4{};
inline constexpr two_shot_groups<group_absmax<4, 128, linear_levels, bfloat16_scale, independent>, 2048> qsgd_4{};  //!< 7 levels of each sign, by the largest magnitude of a bucket of 128
inline constexpr two_shot_groups<group_absmax<4, 128, natural_levels, bfloat16_scale, independent>, 2048> natural_4{};  //!< the same with powers of two
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

// clang-format on

}  // namespace tersum::inline v0::presets
