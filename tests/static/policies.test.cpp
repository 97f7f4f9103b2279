// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies cost nothing to carry: empty, or as large as their run-time parameters, and trivially copyable, says the compiler.

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/packed_codes.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>
#include <tersum/wire.hpp>
#include <tersum_baselines/full_hadamard.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

using namespace tersum;

template <class... Policies>
constexpr bool are_empty = ((std::is_empty_v<Policies> && std::is_trivial_v<Policies> &&
                             std::is_aggregate_v<Policies>)&&...);

template <class... Types>
constexpr bool are_plain_values = ((std::is_trivially_copyable_v<Types> &&
                                    std::is_standard_layout_v<Types> &&
                                    std::is_nothrow_default_constructible_v<Types>)&&...);

static_assert(are_empty<fixed_chunks<128>, fixed_chunks<32768>>);
static_assert(are_empty<no_rotation, partial_hadamard<1024>, full_hadamard>);
static_assert(are_empty<no_headroom>);
static_assert(are_empty<independent, stratified, no_dither>);
static_assert(are_empty<stochastic_quantizer<4>, nearest_quantizer<4>, cast<half>, lloyd_max<4>>);
static_assert(
  are_empty<packed_codes<4>, saturating_add<4>, native_sum<float>, native_max<bfloat16>>);
static_assert(are_empty<saturating_sum<4>, widening_sum<4, 8>, guard_lanes<8>>);
static_assert(are_empty<no_feedback, error_feedback>);

// One float each.
static_assert(sizeof(fixed_headroom) == sizeof(float) &&
              sizeof(tracked_correlation) == sizeof(float));
static_assert(are_plain_values<fixed_headroom, tracked_correlation>);
static_assert(sizeof(rms_range<tracked_correlation>) == 2 * sizeof(float));
static_assert(sizeof(absmax_range<fixed_headroom>) == 2 * sizeof(float));
static_assert(sizeof(rms_range<no_headroom>) <= 2 * sizeof(float));
static_assert(are_plain_values<rms_range<>, absmax_range<>, global_range<>>);
static_assert(are_plain_values<rms_range<tracked_correlation, bfloat16>, rms_range<no_headroom>>);

// What kernels and foreign code are handed.
static_assert(are_plain_values<dither_key, philox_block, world>);
static_assert(sizeof(philox_block) == 16 && sizeof(dither_key) == 24);
static_assert(are_plain_values<wire<saturating_add<4>>, wire<native_sum<std::int8_t>>>);
static_assert(sizeof(wire<native_sum<float>>) == sizeof(void*) + 2 * sizeof(std::size_t));
static_assert(std::is_trivially_copyable_v<status> && std::is_trivially_copyable_v<tensor>);
static_assert(std::is_trivially_copyable_v<layout>);

// Defaults that presets and documentation count on.
static_assert(std::is_same_v<rms_range<>, rms_range<tracked_correlation, float>>);
static_assert(std::is_same_v<absmax_range<>, absmax_range<no_headroom, float>>);
static_assert(std::is_same_v<global_range<>, global_range<no_headroom, float>>);
static_assert(std::is_same_v<stochastic_quantizer<4>, stochastic_quantizer<4, stratified>>);
static_assert(std::is_same_v<independent, independent_dither<7>> &&
              std::is_same_v<stratified, stratified_dither<7>>);
static_assert(std::is_same_v<guard_lanes<8>, guard_lanes<8, std::uint32_t>>);
static_assert(!error_feedback::enabled == no_feedback::enabled);

// An evaluated constant of every function that promises to be one.
static_assert(to_half(1.0f) == half::from_bits(0x3c00) &&
              to_float(half::from_bits(0x3c00)) == 1.0f);
static_assert(to_bfloat16(1.0f) == bfloat16::from_bits(0x3f80) &&
              to_bfloat16_upwards(1.0f) == bfloat16::from_bits(0x3f80));
static_assert(packed_codes<4>::get(packed_codes<4>::put(-7, 3), 3) == -7);
static_assert(dither_byte<stratified>(0, {.rank = 1}) == (dither_byte<stratified>(0, {}) ^ 128u));

}  // namespace

TEST_CASE("what is asserted above holds, since this file compiles") {}
