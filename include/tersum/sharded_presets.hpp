// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Named codecs for `reduce_scatter_mean` and `all_gather_values`: values to make plans from.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/sharded_codec.hpp>
#include <tersum/summed_shards_codec.hpp>
#include <tersum/values_codec.hpp>

namespace tersum::inline v0::presets {

// clang-format off

//! @name Shards: rotated chunks in Lloyd-Max codes, decoded and added by the ranks whose shards they lie in
//! The codes are those of `two_shot_*`; the mean is not encoded again. Bits of a code in the name, a scale for every 1024.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using sharded = sharded_codec<fixed_chunks<1024>, partial_hadamard<1024>, lloyd_max<Bits>, Feedback>;
inline constexpr sharded<1> sharded_1{};
inline constexpr sharded<2> sharded_2{};
inline constexpr sharded<3> sharded_3{};
inline constexpr sharded<4> sharded_4{};
inline constexpr sharded<8> sharded_8{};
inline constexpr sharded<2, error_feedback> sharded_2_ef{};
inline constexpr sharded<4, error_feedback> sharded_4_ef{};
//! Halves on the wire, with a scale for every 1024; sums in float.
inline constexpr sharded_codec<fixed_chunks<1024>, no_rotation, cast<half>> sharded_half{};
//! @}

//! @name Shards whose codes a reduce-scatter adds
//! The parts of `rotated_sat4`, `rotated_sat8` and `rotated_sat4_ef`, in saturating lanes; and codes of 4 bits in native
//! integers of 8, for transports that add nothing else, of up to 18 ranks.
//! @{
template <quantizer Quantizer, feedback Feedback = no_feedback>
using saturating_shards = summed_shards_codec<fixed_chunks<1024>, partial_hadamard<1024>, rms_range<tracked_correlation>, Quantizer, saturating_sum<Quantizer::bits>, Feedback>;
inline constexpr saturating_shards<stochastic_quantizer<4>> summed_shards_sat4{.range = {.clip = 1.9f}};
inline constexpr saturating_shards<stochastic_quantizer<8>> summed_shards_sat8{.range = {.clip = 3.6f}};
inline constexpr saturating_shards<nearest_quantizer<4>, error_feedback> summed_shards_sat4_ef{.range = {.clip = 1.9f}};
inline constexpr summed_shards_codec<fixed_chunks<1024>, partial_hadamard<1024>, rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>> summed_shards_wide4{.range = {.clip = 3.0f}};
//! @}

//! @name Values: each rank's shard in codes, for all ranks
//! The codes are those of `two_shot_*`. `differences_*` have codes of what has changed since the last exchange.
//! @{
template <int Bits, feedback Feedback = no_feedback>
using values = values_codec<fixed_chunks<1024>, partial_hadamard<1024>, lloyd_max<Bits>, Feedback>;
inline constexpr values<4> values_4{};
inline constexpr values<8> values_8{};
inline constexpr values<4, error_feedback> values_4_ef{};
inline constexpr values_codec<fixed_chunks<1024>, no_rotation, cast<half>> values_half{};
inline constexpr values<2, difference_feedback> differences_2{};
inline constexpr values<4, difference_feedback> differences_4{};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
